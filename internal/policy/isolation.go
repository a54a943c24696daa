package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// isolation reports filters that cover what the store sends to other clients.
func (c *checker) isolation(r *Rule) {
	for _, e := range r.Entries {
		if e.Methods != Subscribe || e.never != "" {
			continue
		}
		for _, a := range c.first[r][:min(len(c.first[r]), 8)] {
			if c.covers(a, e) {
				break
			}
		}
	}
}

// covers reports whether an entry lets an actor read what the store sends to others.
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
	for _, id := range e.owners() {
		other := own
		other.ClientID = id
		if id != a.id && len(c.claims[id]) > 0 && !slices.Contains(c.claims[id], a) && (a.id != "" || c.ask(other).connect == nil) {
			victims = append(victims, id)
		}
	}
	for _, victim := range victims {
		what, topic := "", wire.NotifyFilter(victim)
		for _, f := range responseForms(victim) {
			if b.covers(f[1], true) {
				what, topic = "replies", f[1]
			}
		}
		if b.covers(wire.NotifyFilter(victim), true) {
			what = strings.TrimPrefix(what+" and notifications", " and ")
		}
		if what == "" {
			continue
		}
		whose := "of other clients"
		if victim != victims[0] {
			whose = "of client id " + victim
		}
		mend, hint := c.isolate(a, e, b, what, victim)
		c.find(idCovers, e.Line, Warning, mend, hint, "Subscribe %s covers the %s %s: %s reads them and, by choosing such a response topic, makes the store send forged ones", e.Text, what, whose, a.key())
		c.prove(allowing(own, Action{Subscribe, topic}))
		return true
	}
	return false
}

// isolate returns an entry in place of one that covers a victim's topics, and says what to write.
func (c *checker) isolate(a *actor, e *Entry, b *bound, what, victim string) (mend *Mend, hint string) {
	id := a.full.clients[0].ClientID
	first := b.levels[0]
	switch {
	case b.wild[0] || len(b.levels) < 3 && b.wild[len(b.wild)-1]:
		return nil, "list the topics that it needs: those of applications, and clients/{principal.clientId}/#; a filter that begins with + or # covers all of clients/"
	case first == "clients" && what == "replies":
		better := e.changed("clients/{principal.clientId}/#")
		if own, ok := better.bind(&a.full.clients[0].Principal); ok && own.covers(wire.ResponseTopic(id), true) && !own.covers(wire.HexResponseTopic(victim), true) && !own.covers(wire.ResponseTopic(victim), true) {
			hint = "write \"clients/{principal.clientId}/#\"; the Go SDK writes the id in hexadecimal, for which no token stands"
			return &Mend{Old: e, New: []*Entry{better}}, hint + ": list that topic for each client, such as " + wire.HexResponseTopic(id) + " for " + id
		}
	}
	better := e.changed(wire.NotifyFilter(id))
	if len(e.Rule.alternatives()) == 1 && a.exact() && !strings.HasSuffix(e.Text, wildAll) {
		return &Mend{Old: e, New: []*Entry{better}}, fmt.Sprintf("write %q: the id %s in hexadecimal", better.Text, id)
	}
	return nil, "no token stands for an id in hexadecimal: list the filter of each client, in a rule of its own, such as " + better.Text + " for client id " + id
}

// prefixes reports patterns of client ids by which one principal can take the ids of another.
func (c *checker) prefixes(r *Rule) {
	for _, e := range r.Entries {
		if e.Methods != Connect || len(c.first[r]) == 0 {
			continue
		}
		for i, text := range e.ClientIDs {
			parts, why := parseParts(text)
			if why != "" {
				continue
			}
			for j, p := range parts {
				name, attribute := strings.CutPrefix(p.token, tokenAttribute)
				if p.token != tokenUser && !attribute {
					continue
				}
				bare := j+1 < len(parts) && strings.IndexByte("*?[", (parts[j+1].text + "x")[0]) >= 0 || j > 0 && strings.HasSuffix(parts[j-1].text, "*")
				severity, one, two, found := c.collision(r, text, p.token, name, bare)
				if !found {
					continue
				}
				exact := slices.Clone(e.ClientIDs)
				exact[i] = tokenStart + p.token + "}"
				who := "user " + one.Username
				if attribute {
					who = "a client with " + name + "=" + one.Attributes[name]
				}
				c.find(idPrefix, e.idLine(i), severity, &Mend{Old: e, New: []*Entry{e.connecting(exact...)}}, fmt.Sprintf("write %q, or a separator that no name contains before the *", exact[i]),
					"Connect as %s: %s can take the id %s, which is also that of %s", text, who, fitting(text, &two), map[bool]string{true: name + "=" + two.Attributes[name], false: "a user " + two.Username}[attribute])
				if r.names(&one) {
					c.prove(allowing(one, Action{Method: Connect}))
				}
				break
			}
		}
	}
}

// collision returns two principals with different values of a token, of which the first can take an id of the second.
func (c *checker) collision(r *Rule, pattern, token, attribute string, bare bool) (severity Severity, one, two Principal, found bool) {
	values := make(map[string]bool) // of named principals
	open := false                   // other values may occur
	for _, a := range r.alternatives() {
		if value := cmp.Or(a.user, a.set[attribute]); token == tokenUser && a.user != "" || a.set[attribute] != "" {
			values[value] = true
		} else {
			open = true
		}
	}
	ids := newIDs([]string{pattern})
	try := func(short, long string) bool {
		one, two = c.first[r][0].full.who, c.first[r][0].full.who
		for _, pair := range []struct {
			who   *Principal
			value string
		}{{&one, short}, {&two, long}} {
			if pair.who.Attributes = maps.Clone(pair.who.Attributes); token == tokenUser {
				pair.who.Username = pair.value
			} else {
				if pair.who.Attributes == nil {
					pair.who.Attributes = make(map[string]string)
				}
				pair.who.Attributes[attribute] = pair.value
			}
		}
		one.ClientID = fitting(pattern, &two)
		two.ClientID = one.ClientID
		e := Entry{ClientIDs: []string{pattern}, ids: ids}
		return e.fits(&one) && e.fits(&two)
	}
	for _, long := range slices.Sorted(maps.Keys(values)) {
		for n := 1; n < len(long); n++ {
			if values[long[:n]] && try(long[:n], long) {
				return Warning, one, two, true
			}
		}
	}
	severity = Warning
	if token != tokenUser && !open {
		severity = Info // the rule lists all values
	}
	short := cmp.Or(slices.Sorted(maps.Keys(values))...)
	if open || short == "" {
		short = cmp.Or(short, "ann")
	}
	return severity, one, two, bare && (try(short, short+"abel") || try(short, "x"+short))
}
