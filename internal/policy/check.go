package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// Obsolete topics of the state store (protocol.md 1.1).
var obsolete = []string{"$services/statestore/", "$store/", "statestore/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/"}

// Check returns the mistakes in the policy, in the order of their lines: those of Findings, and rules
// that do something else than they seem to. It checks each resource by itself, because a port of the
// broker has one.
func (p *Policy) Check() []Finding {
	c := checker{policy: p, all: slices.Clone(p.Findings)}
	for i := range p.Resources {
		c.resource(i)
	}
	slices.SortStableFunc(c.all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return slices.Compact(c.all)
}

type checker struct {
	policy *Policy
	all    []Finding
	file   string
	rules  []*Rule // of one resource

	exact map[string]*Rule  // the first rule with this alternative and this entry
	wild  map[string][]held // the entries that may cover others, by alternative and method
	loose []alternative     // those that may connect with any client id
	free  map[string]bool   // the keys of loose
	seen  map[string]bool   // alternatives whose way to the store was checked
	open  map[int][]*way    // by step, the ways that have it
	idle  map[*Rule]bool    // rules that add nothing
	lacks []lack            // what they lack

	unused string // see suffix
}

// whoever stands for the alternatives in the message of a lack.
const whoever = "\x00"

// A lack is a finding about one or more alternatives.
type lack struct {
	who []string
	Finding
}

func (c *checker) lack(who alternative, line int, severity Severity, hint, message string) {
	for i, l := range c.lacks {
		if l.Line == line && l.Message == message {
			c.lacks[i].who = append(l.who, who.key())
			return
		}
	}
	c.lacks = append(c.lacks, lack{[]string{who.key()}, Finding{c.file, line, severity, message, hint}})
}

type held struct {
	rule  *Rule
	entry *Entry
}

func (c *checker) find(line int, severity Severity, hint, message string, args ...any) {
	c.all = append(c.all, Finding{c.file, line, severity, fmt.Sprintf(message, args...), hint})
}

// An alternative is one of the ways in which a rule names principals.
type alternative struct {
	user, id string
	set      map[string]string
}

func (r *Rule) alternatives() (all []alternative) {
	for _, name := range r.Usernames {
		all = append(all, alternative{user: name})
	}
	for _, id := range r.ClientIDs {
		all = append(all, alternative{id: id})
	}
	for _, set := range r.Attributes {
		if len(set) > 0 {
			all = append(all, alternative{set: set})
		}
	}
	return all
}

// key identifies an alternative among the rules.
func (a alternative) key() string {
	switch {
	case a.user != "":
		return "user " + a.user
	case a.id != "":
		return "client id " + a.id
	}
	return "attributes " + attributesText(a.set)
}

// weaker returns the keys of all alternatives that hold for every principal that a holds for.
func (a alternative) weaker() []string {
	const most = 6 // 2^6 subsets
	if len(a.set) > most || a.set == nil {
		return []string{a.key()}
	}
	names := slices.Sorted(maps.Keys(a.set))
	var keys []string
	for bits := 1; bits < 1<<len(names); bits++ {
		set := make(map[string]string)
		for i, name := range names {
			if bits>>i&1 == 1 {
				set[name] = a.set[name]
			}
		}
		keys = append(keys, alternative{set: set}.key())
	}
	return keys
}

// overlaps reports whether a principal may fit both alternatives.
func (a alternative) overlaps(b alternative) bool {
	if a.user != "" && b.user != "" || a.id != "" && b.id != "" {
		return a.user == b.user && a.id == b.id
	}
	for name, value := range a.set {
		if other, ok := b.set[name]; ok && other != value {
			return false
		}
	}
	return true
}

func (c *checker) resource(i int) {
	res := c.policy.Resources[i]
	c.file, c.rules, c.idle = res.File, nil, make(map[*Rule]bool)
	c.exact, c.wild, c.free, c.seen, c.loose = make(map[string]*Rule), make(map[string][]held), make(map[string]bool), make(map[string]bool), nil
	for _, r := range c.policy.Rules {
		if r.Resource == i {
			c.rules = append(c.rules, r)
		}
	}
	for _, r := range c.rules {
		c.collect(r)
	}
	one := &Policy{Rules: c.rules, Resources: []Resource{res}}
	for _, r := range one.Rules {
		c.principals(r)
		c.topics(r)
		c.tokens(r)
		c.redundant(r)
	}
	c.ways()
}

// collect notes what a rule allows, for the questions about all rules.
func (c *checker) collect(r *Rule) {
	for _, a := range r.alternatives() {
		key := a.key()
		for _, e := range r.Entries {
			if e.Methods == Connect && !bindsID(e) && !c.free[key] {
				c.free[key], c.loose = true, append(c.loose, a)
			}
			if e.never != "" {
				continue
			}
			for _, m := range e.Methods.Each() {
				id := key + "\x00" + entryKey(e, m)
				if c.exact[id] == nil {
					c.exact[id] = r
				}
				if e.levels != nil && strings.ContainsAny(e.Text, "+#") || e.Type == Pattern && strings.Contains(e.Text, "*") {
					at := key + "\x00" + m.String()
					c.wild[at] = append(c.wild[at], held{r, e})
				}
			}
		}
	}
}

func entryKey(e *Entry, m Method) string {
	return fmt.Sprintf("%s %s %s %q", m, e.Type, e.Text, e.ClientIDs)
}

// bindsID reports whether each client id that a Connect allows is fixed, or contains a name that the
// login proves.
func bindsID(e *Entry) bool {
	for _, id := range e.ClientIDs {
		if strings.ContainsAny(id, "*?[") && !strings.Contains(id, tokenStart+tokenUser) && !strings.Contains(id, tokenStart+tokenAttribute) {
			return false
		}
	}
	return len(e.ClientIDs) > 0
}

// principals checks whom a rule is for.
func (c *checker) principals(r *Rule) {
	all := r.alternatives()
	if len(all) == 0 && r.Attributes == nil {
		c.find(r.Line, Warning, "principals: with usernames, clientIds or attributes", "%s names no principals: it is for nobody (assumed)", r.Name)
	}
	if len(r.Entries) == 0 {
		c.find(r.Line, Warning, "", "%s allows nothing", r.Name)
	}
	for _, text := range slices.Concat(r.Usernames, r.ClientIDs) {
		if strings.ContainsAny(text, "*?[{") {
			c.find(r.Line, Warning, "attributes, or clientIds with Connect", "%q in the principals of %s is taken literally (assumed): only names without wildcards are documented", text, r.Name)
		}
	}
	if len(r.ClientIDs) == 0 || len(r.Entries) == 0 {
		return
	}
	for _, a := range c.loose {
		if !slices.ContainsFunc(all, func(b alternative) bool { return b.id != "" && (a.id == "" || a.id == b.id) }) {
			continue
		}
		c.find(r.Line, Warning, "usernames or attributes; or bind ids to users: Connect with clientIds such as \"{principal.username}*\"",
			"%s is for the client id %s, which any client of %s can take", r.Name, strings.Join(r.ClientIDs, ", "), a.who())
		return
	}
}

func (a alternative) who() string {
	if a.id != "" {
		return "this port"
	}
	return a.key()
}

// topics checks the texts of topics.
func (c *checker) topics(r *Rule) {
	for _, e := range r.Entries {
		if e.levels == nil || e.never != "" {
			continue
		}
		for _, old := range obsolete {
			if strings.HasPrefix(e.Text, old) {
				c.find(e.Line, Error, wire.RequestTopic, "%s: an obsolete topic of the state store, which has no effect", e.Text)
			}
		}
		switch {
		case strings.Contains(e.Text, "*"):
			c.find(e.Line, Warning, "+ for one level, # for all below", "topic %q: * is not a wildcard in topics", e.Text)
		case strings.ContainsAny(e.Text, "{}") && !strings.Contains(e.Text, tokenStart):
			c.find(e.Line, Warning, "{principal.clientId}, {principal.username} or {principal.attributes.NAME}", "topic %q: the braces are literal", e.Text)
		case e.Methods == Publish && strings.HasPrefix(e.Text, wire.NotifyTopics):
			c.find(e.Line, Warning, "", "%s: only the store publishes notifications", e.Text)
		}
	}
}

// tokens checks that a rule's principals have what its tokens stand for, and cannot choose it.
func (c *checker) tokens(r *Rule) {
	all := r.alternatives()
	reported := make(map[string]bool)
	for _, e := range r.Entries {
		for _, text := range append([]string{e.Text}, e.ClientIDs...) {
			if e.Type == String || e.Type == Binary {
				continue
			}
			parts, _ := parseParts(text)
			if e.levels != nil && text == e.Text {
				parts = slices.Concat(e.levels...)
			}
			for _, p := range parts {
				if p.token == "" || p.token == tokenWild || reported[p.token] {
					continue
				}
				if c.token(r, e, p.token, all, text == e.Text) {
					reported[p.token] = true
				}
			}
		}
	}
}

func (c *checker) token(r *Rule, e *Entry, token string, all []alternative, granted bool) (found bool) {
	name, attribute := strings.CutPrefix(token, tokenAttribute)
	switch {
	case attribute:
		if len(all) > 0 && !slices.ContainsFunc(all, func(a alternative) bool { _, ok := a.set[name]; return ok }) {
			c.find(e.Line, Warning, "attributes: - "+name+": VALUE, or another token", "{principal.%s}: no principal of %s must have the attribute %s; for clients without it, the entry matches nothing", token, r.Name, name)
			return true
		}
	case token == tokenClient && granted:
		for _, a := range c.loose {
			if !slices.ContainsFunc(all, a.overlaps) {
				continue
			}
			c.find(e.Line, Warning, "Connect with clientIds such as \"{principal.username}*\", and no other Connect for them",
				"{principal.clientId}: any client of %s can take another client's id, and with it what %s allows", a.who(), r.Name)
			return true
		}
	}
	return false
}

// redundant reports a rule of which every entry is allowed by other rules for all its principals.
func (c *checker) redundant(r *Rule) {
	all := r.alternatives()
	if len(all) == 0 || len(r.Entries) == 0 {
		return
	}
	var others []string
	for _, e := range r.Entries {
		if e.never != "" {
			return
		}
		for _, m := range e.Methods.Each() {
			for _, a := range all {
				other := c.covered(r, e, m, a)
				if other == nil {
					return
				}
				if !slices.Contains(others, other.Name) {
					others = append(others, other.Name)
				}
			}
		}
	}
	c.idle[r] = true
	c.find(r.Line, Warning, "remove it", "%s adds nothing to %s", r.Name, strings.Join(others, ", "))
}

// covered returns another rule that allows what an entry allows to an alternative, or nil. A rule that adds
// nothing itself does not count, so that all that do may be removed.
func (c *checker) covered(r *Rule, e *Entry, m Method, a alternative) *Rule {
	for _, key := range a.weaker() {
		free := *e
		free.ClientIDs = nil
		for _, same := range []*Entry{e, &free} {
			if first := c.exact[key+"\x00"+entryKey(same, m)]; first != nil && first != r && !c.idle[first] {
				return first
			}
		}
		for _, h := range c.wild[key+"\x00"+m.String()] {
			if h.rule != r && !c.idle[h.rule] && h.entry.includes(e) {
				return h.rule
			}
		}
	}
	return nil
}

// includes reports whether an entry allows everything that another one of the same method allows. It may
// say no although it does.
func (e *Entry) includes(other *Entry) bool {
	if len(e.ClientIDs) > 0 || e.Type != Pattern && e.Type != other.Type || e.Text == other.Text {
		return false // an equal entry is found otherwise
	}
	if e.Type == Pattern {
		prefix, star := strings.CutSuffix(e.Text, "*")
		return star && !strings.ContainsAny(prefix, "*?[") && (prefix == "" || other.Type != Binary && strings.HasPrefix(other.Text, prefix))
	}
	var b bound
	for _, l := range e.levels {
		b.levels, b.wild = append(b.levels, l[0].name()), append(b.wild, l[0].token == tokenWild)
	}
	return b.covers(other.Text, true)
}

// name returns a part as written.
func (p part) name() string {
	if p.token == "" || p.token == tokenWild {
		return p.text
	}
	return tokenStart + p.token + "}"
}
