package policy

import (
	"cmp"
	"slices"
	"strings"
)

// A Change is an action that two policies decide differently.
type Change struct {
	Deed
	Lost     bool   // only the old policy allows it
	Old, New *Entry // the entry that allows it; nil = none
	From     string // the text of the entry from which the question was made; "" = the question was given
}

// Compare returns what two policies decide differently: for all principals that either names, what the
// entries of either list, with examples for their patterns, and the given deeds. Changes that no
// example shows are not found.
func Compare(old, next *Policy, deeds []Deed) (changes []Change) {
	seen := make(map[string]bool)
	compare := func(d Deed, from string, oldClient, newClient *Client) {
		a, b := oldClient.Allowed(d.Action), newClient.Allowed(d.Action)
		if (a == nil) == (b == nil) {
			return
		}
		id := d.name() + "\x00" + d.Method.String() + "\x00" + cmp.Or(from, d.On)
		if !seen[id] {
			seen[id] = true
			changes = append(changes, Change{d, a != nil, a, b, from})
		}
	}
	for _, d := range deeds {
		compare(d, "", old.For(d.Principal), next.For(d.Principal))
	}
	// Only for the principals of a rule that differs can anything differ, and only in what the rule allows.
	for _, pair := range [][2]*Policy{{old, next}, {next, old}} {
		same := make(map[string]bool)
		for _, r := range pair[1].Rules {
			same[r.Flow()] = true
		}
		for _, r := range pair[0].Rules {
			if same[r.Flow()] {
				continue
			}
			for _, alt := range r.alternatives() {
				clients := r.clients(alt)
				connects := func(who Principal) bool {
					return old.For(who).connect != nil || next.For(who).connect != nil
				}
				some := slices.ContainsFunc(clients, connects)
				for _, who := range clients {
					if some && !connects(who) {
						continue
					}
					a, b := old.For(who), next.For(who)
					for _, e := range r.Entries {
						for _, m := range e.Methods.Each() {
							for _, on := range e.examples(&who, m) {
								compare(Deed{Principal: who, Action: Action{m, on}}, e.Text, a, b)
							}
						}
					}
				}
			}
		}
	}
	return changes
}

// clients returns principals of an alternative, with the client ids that the rule distinguishes.
func (r *Rule) clients(alt alternative) []Principal {
	who := Principal{Username: alt.user, ClientID: alt.id, Attributes: alt.set}
	if who.ClientID != "" {
		return []Principal{who}
	}
	ids := []string{"client-1"}
	for _, e := range r.Entries {
		for _, pattern := range e.ClientIDs {
			if id := example(pattern, &who); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	all := make([]Principal, len(ids))
	for i, id := range ids {
		all[i] = who
		all[i].ClientID = id
	}
	return all
}

// name identifies a principal for people.
func (w Principal) name() string {
	parts := []string{attributesText(w.Attributes)}
	if w.Username != "" {
		parts = append(parts, w.Username)
	}
	return strings.Join(append(parts, w.ClientID), " ")
}

// examples returns actions that an entry allows to a principal.
func (e *Entry) examples(who *Principal, m Method) (all []string) {
	switch {
	case e.never != "" || e.own:
		return nil
	case m == Connect:
		return []string{""}
	case e.Type == String, e.Type == Binary:
		return []string{e.exact}
	case e.Type == Pattern:
		text := ""
		for _, p := range e.key {
			value, ok := p.text, true
			if p.token != "" {
				if value, ok = who.value(p.token); !ok {
					return nil
				}
				value = QuotePattern(value)
			}
			text += value
		}
		all = append(all, sample(text))
		for _, fill := range []string{"x", "x/y", "9"} {
			all = append(all, sample(strings.ReplaceAll(strings.ReplaceAll(text, "*", fill), "?", fill[:1])))
		}
		return all
	}
	b, ok := (&Entry{levels: e.levels}).bind(who)
	if !ok {
		return nil
	}
	if m == Subscribe {
		all = append(all, strings.Join(b.levels, "/"))
	}
	for _, rest := range []string{"x", "x/y"} {
		levels := slices.Clone(b.levels)
		for i, wild := range b.wild {
			if wild {
				levels[i] = "x"
			}
			if wild && b.levels[i] == wildAll {
				levels[i] = rest
			}
		}
		all = append(all, strings.Join(levels, "/"))
	}
	if n := len(b.levels) - 1; n > 0 && b.levels[n] == wildAll && b.wild[n] {
		all = append(all, all[len(all)-1][:strings.LastIndex(strings.TrimSuffix(all[len(all)-1], "x/y"), "/")])
	}
	return all
}
