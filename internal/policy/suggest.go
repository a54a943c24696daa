package policy

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/internal/yamltext"
)

// A Deed is an action that a client was seen to do.
type Deed struct {
	Principal
	Action
	Written bool // On is written as in a resource, with tokens and, if it is a key, wildcards
}

// alternative returns how a suggested rule names the client.
func (d Deed) alternative() alternative {
	switch {
	case d.Username != "":
		return alternative{user: d.Username}
	case d.ClientID != "":
		return alternative{id: d.ClientID}
	}
	return alternative{set: d.Attributes}
}

// topic returns the topic or filter that a rule must allow.
func (a Action) topic() string {
	if rest, shared := strings.CutPrefix(a.On, "$share/"); shared && a.Method == Subscribe {
		_, filter, _ := strings.Cut(rest, "/")
		return filter
	}
	return a.On
}

// keyEntries returns the entries of a rule for keys with what may be done with each. wild has the keys that are patterns.
func keyEntries(r *Rule, keys map[string]Method, wild map[string]bool) (entries []*Entry) {
	for _, m := range methodBits[3:] {
		for _, t := range []KeyType{Pattern, String, Binary} {
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				if keys[key] == m && wild[key] == (t == Pattern) && utf8.ValidString(key) == (t != Binary) && key != "" {
					text := key
					if t == Binary {
						text = base64.StdEncoding.EncodeToString([]byte(key))
					}
					entries = append(entries, &Entry{Rule: r, Methods: m, Type: t, Text: text})
				}
			}
		}
	}
	return entries
}

// A seen is what an alternative did.
type seen struct {
	who   alternative
	ids   map[string]bool // of a user's Connect
	deeds map[Action]bool
	keys  map[string]Method
	wild  map[string]bool // the keys that are patterns
}

// add adds a deed. An error says why no rule can express it.
func (s *seen) add(d Deed) error {
	switch {
	case d.Method&(Read|Write) != 0:
		if strings.ContainsAny(d.On, "*?[") && utf8.ValidString(d.On) && !strings.ContainsAny(d.On, "{}") {
			key := d.On
			if !d.Written {
				key = QuotePattern(key)
			}
			s.wild[key] = true
			s.keys[key] |= d.Method
			return nil
		}
		s.keys[d.On] |= d.Method
	case d.Method == Connect && s.who.user != "":
		if strings.ContainsAny(d.ClientID, "{}") {
			return fmt.Errorf("%s as %q: no rule can name this client id, because it contains a brace", d.Method, d.ClientID)
		}
		s.ids[d.ClientID] = true
		s.deeds[Action{Method: Connect}] = true
	default:
		d.On = d.topic()
		if strings.Contains(d.On, tokenStart) && !d.Written {
			return fmt.Errorf("%s %q: no rule can name this topic, because it contains %s", d.Method, d.On, tokenStart)
		}
		if e := (&Entry{Methods: d.Method}).changed(d.On); e.never != "" {
			return fmt.Errorf("%s %q: no rule can name this topic: %s", d.Method, d.On, e.never)
		}
		s.deeds[d.Action] = true
	}
	return nil
}

// Suggest returns the rules that allow exactly what was seen: each user name or, without one, each client
// id may do what it did. Exceptions: a filter includes the narrower filters, and users of the same
// client id share what it may do. An error says what no rule can express.
//
// Once ctx is done, its cause is returned.
func Suggest(ctx context.Context, deeds []Deed) ([]*Rule, error) {
	all := make(map[string]*seen)
	for _, d := range deeds {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		who := d.alternative()
		if who.user == "" && who.id == "" && len(who.set) == 0 {
			return nil, fmt.Errorf("%s %q: no rule can name this client, which has no user name, client id or attributes", d.Method, d.On)
		}
		s := all[who.key()]
		if s == nil {
			s = &seen{who, make(map[string]bool), make(map[Action]bool), make(map[string]Method), make(map[string]bool)}
			all[who.key()] = s
		}
		if err := s.add(d); err != nil {
			return nil, err
		}
	}
	same := make(map[string]*Rule) // by what the rule allows
	var rules []*Rule
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if s.ids[""] { // not known
			s.ids = nil
		}
		r := &Rule{}
		for _, m := range methodBits[:3] {
			ids := []string(nil)
			if m == Connect {
				for _, id := range slices.Sorted(maps.Keys(s.ids)) {
					ids = append(ids, QuotePattern(id))
				}
			}
			for _, a := range slices.SortedFunc(maps.Keys(s.deeds), func(a, b Action) int { return strings.Compare(a.On, b.On) }) {
				if a.Method == m {
					r.Entries = append(r.Entries, &Entry{Rule: r, Methods: m, ClientIDs: ids, ids: newIDs(ids), Text: a.On})
				}
			}
		}
		r.Entries = append(r.Entries, keyEntries(r, s.keys, s.wild)...)
		id := fmt.Sprint(r.resources())
		if first := same[id]; first != nil && len(s.ids) == 0 {
			r = first
		} else {
			same[id] = r
			rules = append(rules, r)
		}
		switch {
		case s.who.user != "":
			r.Usernames = append(r.Usernames, s.who.user)
		case s.who.id != "":
			r.ClientIDs = append(r.ClientIDs, s.who.id)
		case len(s.who.set) > 0:
			r.Attributes = append(r.Attributes, s.who.set)
		}
	}
	return rules, nil
}

// A resource is an element of brokerResources or stateStoreResources.
type resource struct {
	method Method
	kind   KeyType
	ids    []string
	texts  []string
}

func (r *Rule) resources() (all []resource) {
	for _, e := range r.Entries {
		n := len(all) - 1
		if n < 0 || all[n].method != e.Methods || all[n].kind != e.Type || !slices.Equal(all[n].ids, e.ClientIDs) {
			all = append(all, resource{method: e.Methods, kind: e.Type, ids: e.ClientIDs})
			n++
		}
		if e.Text != "" {
			all[n].texts = append(all[n].texts, e.Text)
		}
	}
	return all
}

func flow(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = yamltext.Quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (s resource) flow() string {
	text := "{method: " + s.method.String()
	if s.kind != "" {
		return text + ", keyType: " + string(s.kind) + ", keys: " + flow(s.texts) + "}"
	}
	if len(s.ids) > 0 {
		text += ", clientIds: " + flow(s.ids)
	}
	if len(s.texts) > 0 {
		text += ", topics: " + flow(s.texts)
	}
	return text + "}"
}

func (r *Rule) principals() (fields []string) {
	if len(r.Usernames) > 0 {
		fields = append(fields, "usernames: "+flow(r.Usernames))
	}
	if len(r.ClientIDs) > 0 {
		fields = append(fields, "clientIds: "+flow(r.ClientIDs))
	}
	var sets []string
	for _, set := range r.Attributes {
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(set)) {
			pairs = append(pairs, yamltext.Quote(name)+": "+yamltext.Quote(set[name]))
		}
		sets = append(sets, "{"+strings.Join(pairs, ", ")+"}")
	}
	if len(sets) > 0 {
		fields = append(fields, "attributes: ["+strings.Join(sets, ", ")+"]")
	}
	return fields
}

// Flow returns a rule as one line of YAML, to be pasted below rules.
func (r *Rule) Flow() string {
	text := "- {principals: {" + strings.Join(r.principals(), ", ") + "}"
	name := ""
	for _, s := range r.resources() {
		switch list := s.list(); {
		case list == name:
			text += ", "
		case name != "":
			text += "], " + list + ": ["
		default:
			text += ", " + list + ": ["
		}
		name = s.list()
		text += s.flow()
	}
	if name != "" {
		text += "]"
	}
	return text + "}"
}

func (s resource) list() string {
	if s.kind != "" {
		return "stateStoreResources"
	}
	return "brokerResources"
}

// ResourceOf returns rules for what was seen as the YAML of a BrokerAuthorization. Comments silence the findings of
// [Policy.Check] that are about how clients were seen to write names, or which they had.
func ResourceOf(ctx context.Context, name string, rules []*Rule) string {
	text := resourceOf(name, rules)
	p, err := ParseUntil(ctx, "", []byte(text))
	if err != nil {
		return text
	}
	type comment struct {
		ids []string
		why string
	}
	lines, comments := strings.Split(text, "\n"), make(map[int]comment)
	for _, f := range p.Check(ctx, Warning) {
		why := map[string]string{
			idDialect: "its name is so", idBlank: "its name is so", idWatch: "it was not seen to watch", idLock: "it was not seen to read",
			idClaimed: "the client had no login, and a client id proves nothing",
		}[f.ID]
		if c := comments[f.Line]; why != "" && !slices.Contains(c.ids, f.ID) {
			comments[f.Line] = comment{slices.Insert(c.ids, 0, f.ID), cmp.Or(c.why, why)}
		}
	}
	for line, c := range comments {
		lines[line-1] += "  # sscli:ignore " + strings.Join(c.ids, ", ") + ": " + c.why
	}
	return strings.Join(lines, "\n")
}

func resourceOf(name string, rules []*Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %sv1\nkind: %s\nmetadata:\n  name: %s\n  namespace: azure-iot-operations\nspec:\n  authorizationPolicies:\n    cache: Enabled\n", group, kindOf, yamltext.Quote(name))
	if len(rules) == 0 {
		b.WriteString("    rules: []\n")
		return b.String()
	}
	b.WriteString("    rules:\n")
	for _, r := range rules {
		b.WriteString("      - principals:\n")
		for _, f := range r.principals() {
			b.WriteString("          " + f + "\n")
		}
		name := ""
		for _, s := range r.resources() {
			if s.list() != name {
				name = s.list()
				b.WriteString("        " + name + ":\n")
			}
			if len(s.texts)+len(s.ids) < 2 {
				b.WriteString("          - " + s.flow() + "\n")
				continue
			}
			lines := []string{"method: " + s.method.String()}
			if s.kind != "" {
				lines = append(lines, "keyType: "+string(s.kind))
			}
			for _, l := range []struct {
				name  string
				texts []string
			}{{"clientIds", s.ids}, {map[bool]string{true: "topics", false: "keys"}[s.kind == ""], s.texts}} {
				if len(l.texts) > 0 {
					lines = append(lines, l.name+":")
				}
				for _, t := range l.texts {
					lines = append(lines, "  - "+yamltext.Quote(t))
				}
			}
			b.WriteString("          - " + strings.Join(lines, "\n            ") + "\n")
		}
	}
	return b.String()
}

// Generalise replaces what only fits the clients that were seen: three or more keys, topics or client ids
// that have the same beginning up to a separator become a pattern, and the client's own id in a
// topic becomes {principal.clientId}, if all clients that used the topic have this id. notes says what became wider.
//
// Once ctx is done, some are missing.
func Generalise(ctx context.Context, deeds []Deed, rules []*Rule) (notes []string) {
	type use struct {
		who    string // the key of an alternative
		method Method
		topic  string
	}
	ids := make(map[use][]string) // of the clients
	for _, d := range deeds {
		u := use{d.alternative().key(), d.Method, d.topic()}
		ids[u] = append(ids[u], d.ClientID)
	}
	for _, r := range rules {
		// owner returns the id of each client that used the topic of an entry, or "" if they have several.
		owner := func(e *Entry) (owner string) {
			for _, a := range r.alternatives() {
				for _, id := range ids[use{a.key(), e.Methods, e.Text}] {
					if owner != "" && id != owner || id == "" {
						return ""
					}
					owner = id
				}
			}
			return owner
		}
		who := r.someone()
		like := make(map[Method][]string) // by method, the keys of String entries as patterns, sorted
		for _, e := range r.Entries {
			if e.Type == String {
				like[e.Methods] = append(like[e.Methods], QuotePattern(e.Text))
			}
		}
		for _, keys := range like {
			slices.Sort(keys)
		}
		var entries []*Entry
		done := make(map[string]bool)
		add := func(e *Entry, from string) {
			key := e.Methods.String() + entryKey(e)
			if from != e.Text {
				notes = append(notes, fmt.Sprintf("%s: %s %s → %s", who, e.Methods, from, e.Text))
			}
			if !done[key] {
				done[key] = true
				entries = append(entries, e)
			}
		}
		for i, e := range r.Entries {
			if ctx.Err() != nil {
				return notes
			}
			switch {
			case e.Methods == Connect:
				e.ClientIDs = group3(e.ClientIDs)
				if wide := slices.ContainsFunc(e.ClientIDs, func(id string) bool { return strings.HasSuffix(id, "*") }); wide {
					notes = append(notes, fmt.Sprintf("%s: Connect with %s", who, strings.Join(e.ClientIDs, ", ")))
				}
				add(e, e.Text)
			case e.Type == "":
				levels, id := strings.Split(e.Text, "/"), owner(e)
				for j, l := range levels {
					if l != "" && l != wildOne && l != wildAll && l == id {
						levels[j] = tokenStart + tokenClient + "}"
					}
				}
				from := e.Text
				e.Text = strings.Join(levels, "/")
				add(e, from)
			case e.Type == String:
				wide := prefixOf(QuotePattern(e.Text), like[e.Methods])
				if wide == "" || strings.ContainsAny(wide, "{}") {
					add(e, e.Text)
					continue
				}
				pattern := *e
				pattern.Type, pattern.Text = Pattern, wide
				add(&pattern, e.Text)
			default:
				add(r.Entries[i], e.Text)
			}
		}
		slices.SortStableFunc(entries, func(a, b *Entry) int { // as resources groups them
			return slices.Index(methodBits, a.Methods)*10 - slices.Index(methodBits, b.Methods)*10 + strings.Compare(string(a.Type), string(b.Type))
		})
		r.Entries = entries
	}
	return notes
}

// unhex returns the client id that a level has in hexadecimal, or "".
func unhex(level string) string {
	id, err := hex.DecodeString(level)
	if err != nil || wire.HexID(string(id)) != level {
		return ""
	}
	return string(id)
}

// group3 replaces three or more texts with the same beginning by a pattern.
func group3(texts []string) (all []string) {
	sorted := slices.Sorted(slices.Values(texts))
	done := make(map[string]bool)
	for _, t := range texts {
		if wide := prefixOf(t, sorted); wide != "" {
			t = wide
		}
		if !done[t] {
			done[t] = true
			all = append(all, t)
		}
	}
	return all
}

// prefixOf returns the pattern for the texts that begin as text does, up to its last separator, or "" if
// there are fewer than three. The texts are sorted.
func prefixOf(text string, texts []string) string {
	end := strings.LastIndexAny(text, "/:.-_") + 1
	first, _ := slices.BinarySearch(texts, text[:end])
	if end == 0 || first+2 >= len(texts) || !strings.HasPrefix(texts[first+2], text[:end]) {
		return ""
	}
	return text[:end] + "*"
}
