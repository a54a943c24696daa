package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// isolation reports topics by which clients get what the store sends to others, or send what only the store does.
func (c *checker) isolation(r *Rule) {
	for _, e := range r.topics {
		if first := e.levels[0][0]; e.never != "" || first.token == "" && first.text != "clients" {
			continue
		}
		covers := func(a *actor) bool { return c.covers(a, e) }
		if all := c.first[r]; !slices.ContainsFunc(all[:min(len(all), 8)], covers) && e.Methods == Publish && strings.HasPrefix(e.Text, wire.NotifyTopics) {
			c.find(idNotifier, e.Line, Warning, nil, "", "%s: only the store publishes notifications", e.Text)
		}
	}
}

// covers reports whether an entry lets an actor read what the store sends to others, or send it.
func (c *checker) covers(a *actor, e *Entry) bool {
	if len(a.full.clients) == 0 {
		return false
	}
	own := a.full.clients[0].Principal
	b, ok := e.bind(&own)
	if !ok {
		return false
	}
	victims := []string{"other" + c.unused}
	for _, id := range e.named() {
		other := own
		other.ClientID = id
		if id != a.id && len(c.claims[id]) > 0 && !slices.Contains(c.claims[id], a) && (a.id != "" || c.policy.connect(other) == nil) {
			victims = append(victims, id)
		}
	}
	for _, victim := range victims {
		var what []string
		topic := wire.NotifyTopic(victim, "k")
		notified := b.covers(topic, false)
		for _, f := range responseForms(victim) {
			if b.covers(f[1], false) {
				what, topic = append(what, "replies"), f[1]
				break
			}
		}
		if notified {
			what = append(what, "notifications")
		}
		if what == nil {
			continue
		}
		whose := "of other clients"
		if victim != victims[0] {
			whose = "of client id " + victim
		}
		id, can := idCovers, "reads them and, by choosing such a response topic, makes the store send forged ones"
		if e.Methods == Publish {
			id, can = idNotifier, "can send forged ones"
		}
		mend, hint := c.isolate(a, e, b, notified, victim)
		c.find(id, e.Line, Warning, mend, hint, "%s %s covers the %s %s: %s %s", e.Methods, e.Text, strings.Join(what, " and "), whose, a.key(), can)
		c.prove(allowing(own, Action{e.Methods, topic}))
		return true
	}
	return false
}

// named returns the client ids that a level may be, in plain text or in hexadecimal.
func (e *Entry) named() (all []string) {
	for _, l := range e.levels {
		if l[0].token == "" {
			all = append(all, l[0].text, unhex(l[0].text))
		}
	}
	return all
}

// isolate returns an entry in place of one that covers a victim's topics, and says what to write. notified reports whether
// they include those of notifications.
func (c *checker) isolate(a *actor, e *Entry, b *bound, notified bool, victim string) (mend *Mend, hint string) {
	id := a.full.clients[0].ClientID
	first := b.levels[0]
	switch {
	case e.Methods == Publish && first == "clients" && len(b.levels) > 2:
		return &Mend{Old: e}, "remove it: only the store publishes replies and notifications"
	case e.Methods == Publish:
		return nil, "list the topics that it needs: those of applications, and none of the store's below clients/"
	case b.wild[0] || len(b.levels) < 3 && b.wild[len(b.wild)-1]:
		return nil, "list the topics that it needs: those of applications, and clients/{principal.clientId}/#; a filter that begins with + or # covers all of clients/"
	case first == "clients" && !notified:
		better := e.changed("clients/{principal.clientId}/#")
		if own, ok := better.bind(&a.full.clients[0].Principal); ok && own.covers(wire.ResponseTopic(id), true) && !own.covers(wire.HexResponseTopic(victim), true) && !own.covers(wire.ResponseTopic(victim), true) {
			hint = "write \"clients/{principal.clientId}/#\"; the Go SDK writes the id in hexadecimal, for which no token stands"
			return e.by(better), hint + ": list that topic for each client, such as " + wire.HexResponseTopic(id) + " for " + id
		}
	}
	better := e.changed(wire.NotifyFilter(id))
	if len(e.Rule.alternatives()) == 1 && a.exact() && !strings.HasSuffix(e.Text, wildAll) {
		return e.by(better), fmt.Sprintf("write %q: the id %s in hexadecimal", better.Text, id)
	}
	return nil, "no token stands for an id in hexadecimal: list the filter of each client, in a rule of its own, such as " + better.Text + " for client id " + id
}

// prefixes reports patterns of client ids and of keys by which one principal can take what is another's.
func (c *checker) prefixes(r *Rule) {
	for _, e := range r.Entries {
		switch {
		case len(c.first[r]) == 0 || e.never != "":
		case e.Methods == Connect:
			for i, text := range e.ClientIDs {
				c.prefix(r, e, e.idLine(i), text, func(better string) *Mend { return e.withID(i, better) })
			}
		case e.Type == Pattern && strings.Contains(e.Text, tokenStart):
			c.prefix(r, e, e.Line, e.Text, func(better string) *Mend { return e.by(e.changed(better)) })
		}
	}
}

// prefix reports a pattern of an entry. mend returns the mend with another pattern.
func (c *checker) prefix(r *Rule, e *Entry, line int, text string, mend func(string) *Mend) {
	parts, why := parseParts(text)
	if why != "" || !parses(parts) {
		return
	}
	name := "" // of a user, as text
	if i := strings.IndexAny(text, "*?["); e.Methods == Connect && i > 0 && r.lines[alternative{user: text[:i]}.key()] > 0 {
		name, parts = text[:i], []part{{token: tokenUser}, {text: text[i:]}}
	}
	for j, p := range parts {
		if !p.varies() || p.token == tokenClient && e.Methods == Connect {
			continue
		}
		before, after := joined(parts[:j]), joined(parts[j+1:])
		separator, next := follows(parts[j+1:], p.token)
		near, starred := after != "" && strings.IndexByte("*?[{", after[0]) >= 0, strings.HasSuffix(before, "*")
		long := []string{"abel", sample(after)} // what other names go on with
		if !near && !starred {
			long = nil
		}
		severity, one, two, found := c.collision(r, e, parts, p.token, separator, next, long)
		if !found {
			continue
		}
		better, or := before+p.name()+"/"+after, ""
		switch {
		case next != "":
			better = ""
			for _, sep := range []string{"-", "/"} {
				separated := before + p.name() + sep + strings.TrimPrefix(after, separator)
				fixed, _ := parseParts(separated)
				if _, _, _, still := c.collision(r, e, fixed, p.token, sep, next, nil); !still {
					better = separated
					break
				}
			}
		case e.Methods == Connect:
			better, or = strings.TrimRight(before, "*")+cmp.Or(name, p.name())+unwild(after), ", or a separator that no name contains before the *"
		case starred:
			better = before + "/" + p.name() + after
		}
		if fixed, _ := parseParts(better); next == "" && name == "" {
			if _, _, _, still := c.collision(r, e, fixed, p.token, "", "", []string{"abel"}); still {
				better = before + p.name() // exactly
			}
		}
		on := fitting(joined(parts), &two)
		message, action := "%s %s: %s may use the key %s, which is also that of %s", Action{e.Methods.Each()[0], on}
		if e.Methods == Connect {
			message, action = "%s as %s: %s can take the id %s, which is also that of %s", Action{Method: Connect}
		}
		tried, hint := (*Mend)(nil), "a separator that no name contains"
		if better != "" {
			tried, hint = mend(better), fmt.Sprintf("write %q%s", better, or)
		}
		c.find(idPrefix, line, severity, tried, hint, message, e.Methods, text, valued(p.token, one), on, valued(p.token, two))
		if r.names(&one) {
			c.prove(allowing(one, action))
		}
		return
	}
}

func joined(parts []part) (text string) {
	for _, p := range parts {
		text += p.name()
	}
	return text
}

// unwild returns a pattern without the wildcards at its begin.
func unwild(pattern string) string {
	for {
		rest := strings.TrimLeft(pattern, "*?")
		if strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		if rest == pattern {
			return rest
		}
		pattern = rest
	}
}

func valued(token string, who Principal) string {
	value, _ := who.value(token)
	switch token {
	case tokenUser:
		return "user " + value
	case tokenClient:
		return "client id " + value
	}
	return "a client with " + strings.TrimPrefix(token, tokenAttribute) + "=" + value
}

// follows returns the token that follows one, with the text between them; "" = none.
func follows(rest []part, token string) (separator, next string) {
	if len(rest) > 1 && rest[0].token == "" && !strings.ContainsAny(rest[0].text, "*?[") {
		separator, rest = rest[0].text, rest[1:]
	}
	if len(rest) == 0 || !rest[0].varies() || rest[0].token == token {
		return "", ""
	}
	return separator, rest[0].token
}

// collision returns two principals with different values of a token. The first can use what belongs to the second, because
// the pattern of the first matches it. next is the token that follows, after a separator. A name goes on with one of ends.
func (c *checker) collision(r *Rule, e *Entry, parts []part, token, separator, next string, ends []string) (severity Severity, one, two Principal, found bool) {
	try := func(short, long string) bool {
		one, two = c.first[r][0].full.who, c.first[r][0].full.who
		one.Attributes, two.Attributes = maps.Clone(one.Attributes), maps.Clone(two.Attributes)
		one.set(token, short)
		two.set(token, long)
		if value, _ := two.value(next); next != "" {
			one.set(next, strings.TrimPrefix(long, short+separator)+separator+value)
		}
		on := fitting(joined(parts), &two)
		if e.Methods == Connect {
			one.ClientID, two.ClientID = on, on
		}
		matches := func(who *Principal) bool {
			p := compile(parts, who)
			return p != nil && p.Match([]byte(on))
		}
		if next == tokenClient && c.policy.connect(one) == nil && r.names(&one) {
			return false // its id is another one
		}
		return matches(&one) && matches(&two) && (next == "" || r.names(&one))
	}
	v := c.valuesOf(r, token)
	for _, pair := range v.prefixes {
		if try(pair[0], pair[1]) {
			return Warning, one, two, true
		}
	}
	open := v.number < len(r.alternatives()) // other values may occur
	severity = Warning
	if strings.HasPrefix(token, tokenAttribute) && !open && next == "" {
		severity = Info // the rule lists all values
	}
	short := v.first
	if open || short == "" {
		short = cmp.Or(short, "ann")
	}
	found = slices.ContainsFunc(ends, func(end string) bool { return try(short, short+end) || try(short, "x"+short) })
	return severity, one, two, found
}

// tokenValues are what a token stands for, for the principals that a rule names.
type tokenValues struct {
	number   int // of principals with a value
	all      map[string]bool
	first    string      // of all
	prefixes [][2]string // a few values that others begin with, each with one of these
}

// maxPrefixes is the maximum length of tokenValues.prefixes.
const maxPrefixes = 64

// valuesOf returns the values of a token in the principals of a rule.
func (c *checker) valuesOf(r *Rule, token string) *tokenValues {
	tokens := c.values[r]
	if tokens == nil {
		tokens = make(map[string]*tokenValues)
		c.values[r] = tokens
		add := func(token, value string) {
			v := tokens[token]
			if v == nil {
				v = &tokenValues{all: make(map[string]bool)}
				tokens[token] = v
			}
			if value != "" {
				v.number++
				v.all[value] = true
			}
		}
		for i, a := range r.alternatives() {
			add(tokenUser, a.user)
			if i < len(c.first[r]) && a.id == "" && c.first[r][i].exact() {
				a.id = c.first[r][i].full.clients[0].ClientID
			}
			add(tokenClient, a.id)
			for name, value := range a.set {
				add(tokenAttribute+name, value)
			}
		}
	}
	v := tokens[token]
	if v == nil {
		return &tokenValues{}
	}
	if v.first == "" && len(v.all) > 0 {
		sorted := slices.Sorted(maps.Keys(v.all))
		v.first = sorted[0]
		var begins []string // of the value
		for _, value := range sorted {
			for len(begins) > 0 && !strings.HasPrefix(value, begins[len(begins)-1]) {
				begins = begins[:len(begins)-1]
			}
			for _, begin := range begins[:min(len(begins), maxPrefixes-len(v.prefixes))] {
				v.prefixes = append(v.prefixes, [2]string{begin, value})
			}
			begins = append(begins, value)
		}
	}
	return v
}
