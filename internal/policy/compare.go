package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/glob"
)

// A Change is an action that two policies decide differently.
type Change struct {
	Deed
	Lost     bool   // only the old policy allows it
	Old, New *Entry // the entry that allows it; nil = none
	From     string // the text of the entry from which the question was made; "" = the question was given
}

// Compare returns what two policies decide differently: for all principals that either names, what the
// entries of either list, with examples for their patterns, and the given deeds.
//
// A principal has made-up values for the tokens of its rule, or values that fit the client id that the rule names, and
// client ids that the rules tell apart. If the
// other policy allows only a part of what an entry allows, an example of the rest is found, unless the search
// exceeds searchLimit. Once ctx is done, changes are missing. A change may be missed if it depends on a certain value of a token, or concerns only clients
// that fit several principals.
func Compare(ctx context.Context, old, next *Policy, deeds []Deed) (changes []Change) {
	seen := make(map[string]bool)
	compare := func(d Deed, who string, from *Entry, oldClient, newClient *keyIndex) bool {
		a, b := oldClient.allowed(d.Action), newClient.allowed(d.Action)
		if (a == nil) == (b == nil) {
			return false
		}
		id := fmt.Sprintf("%q %s %s %q %t", who, d.Method, from.Type, cmp.Or(from.Text, d.On), a != nil)
		if !seen[id] {
			seen[id] = true
			changes = append(changes, Change{d, a != nil, a, b, from.Text})
		}
		return true
	}
	for _, d := range deeds {
		compare(d, d.name(), &Entry{}, old.For(d.Principal).byPrefix(), next.For(d.Principal).byPrefix())
	}
	unused := suffix(slices.Concat(old.Rules, next.Rules))
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
				who := alt.example(unused, r)
				if ctx.Err() != nil {
					return changes
				}
				clients := r.clients(alt, who, pair[1].rulesFor(&who))
				connects := func(c example) bool {
					return old.bindAll(c.Principal, false).connect != nil || next.bindAll(c.Principal, false).connect != nil
				}
				some := slices.ContainsFunc(clients, connects)
				for _, c := range clients {
					if some && !connects(c) {
						continue
					}
					who := c.Principal
					a, b := old.For(who).byPrefix(), next.For(who).byPrefix()
					other := b
					if pair[1] == old {
						other = a
					}
					same := other.entries()
					for _, e := range r.Entries {
						for _, m := range e.Methods.Each() {
							if ctx.Err() != nil {
								return changes
							}
							if same[entryKey(e, m)] {
								continue
							}
							ask := func(on string) bool {
								return compare(Deed{Principal: who, Action: Action{m, on}}, alt.key()+" "+c.id, e, a, b)
							}
							if !slices.ContainsFunc(e.examples(&who, m, other.Client), ask) {
								if key, found := other.lacks(e, &who, m); found {
									ask(key)
								}
							}
						}
					}
				}
			}
		}
	}
	return changes
}

// entries returns the keys of the entries that a client has. Whatever it has, is the same for an equal entry.
func (c *Client) entries() map[string]bool {
	all := make(map[string]bool)
	for _, b := range slices.Concat(c.topics, c.keys) {
		if b.entry.allow == nil && !b.entry.own {
			for _, m := range b.entry.Methods.Each() {
				all[entryKey(b.entry, m)] = true
			}
		}
	}
	return all
}

// A keyIndex finds the entries for a key by what they begin with.
type keyIndex struct {
	*Client
	keys    map[string][]*bound // by begin
	lengths []int               // of the keys of keys, sorted
}

func (c *Client) byPrefix() *keyIndex {
	x := &keyIndex{Client: c, keys: make(map[string][]*bound)}
	for _, b := range c.keys {
		begin := b.begin()
		x.keys[begin] = append(x.keys[begin], b)
	}
	for begin := range x.keys {
		x.lengths = append(x.lengths, len(begin))
	}
	slices.Sort(x.lengths)
	x.lengths = slices.Compact(x.lengths)
	return x
}

// begin returns what each key that an entry allows begins with.
func (b *bound) begin() string {
	switch {
	case b.all || b.entry.allow != nil:
		return ""
	case b.glob != nil:
		return string(b.glob.Prefix())
	}
	return b.entry.exact
}

// allowed is Client.Allowed.
func (x *keyIndex) allowed(a Action) *Entry {
	if a.Method&(Read|Write) == 0 {
		return x.Allowed(a)
	}
	if b := x.find(a); b != nil {
		return b.entry
	}
	return nil
}

// find returns what allows an action on a key, or nil.
func (x *keyIndex) find(a Action) *bound {
	for _, n := range x.lengths {
		for _, b := range x.keys[a.On[:min(n, len(a.On))]] {
			if b.entry.Methods&a.Method != 0 && b.matches(&x.who, a) {
				return b
			}
		}
	}
	return nil
}

// An example is a principal that fits an alternative of a rule.
type example struct {
	Principal
	id string // the pattern of client ids that it is for; "" = any other id
}

// clients returns principals of an alternative, with the client ids that the rule distinguishes, and with ids
// that the rule allows and another policy does not.
func (r *Rule) clients(alt alternative, who Principal, other []*Rule) []example {
	all := []example{{who, ""}}
	if alt.id != "" {
		for _, e := range r.Entries {
			for _, id := range e.ClientIDs {
				if fits, ok := alt.valuesFor(who, id); ok {
					all = append(all, example{fits, id})
				}
			}
		}
		return all
	}
	var connect []*glob.Pattern
	lists := [][]*glob.Pattern{nil}
	for _, o := range other {
		for _, e := range o.Entries {
			list := []*glob.Pattern{anyID()}
			if len(e.ClientIDs) > 0 {
				list = patterns(e.ClientIDs, &who)
				lists = append(lists, list)
			}
			if e.Methods == Connect {
				connect = append(connect, list...)
			}
		}
	}
	lists[0] = connect
	add := func(clientID, pattern string) {
		fits := who
		fits.ClientID = clientID
		all = append(all, example{fits, pattern})
	}
	search := func(own *glob.Pattern, pattern string) {
		for _, list := range lists[:min(len(lists), maxCallers)] {
			match := func(id string) *glob.Pattern {
				if i := slices.IndexFunc(list, func(p *glob.Pattern) bool { return p.Match([]byte(id)) }); i >= 0 {
					return list[i]
				}
				return nil
			}
			if id, found := without(own, match); found {
				add(id, pattern)
			}
		}
	}
	done := make(map[string]bool)
	for _, e := range r.Entries {
		for _, id := range e.ClientIDs {
			if done[id] {
				continue
			}
			done[id] = true
			for _, own := range patterns([]string{id}, &who) {
				for _, text := range []string{id, strings.ReplaceAll(id, "*", "x")} {
					if found := fitting(text, &who); own.Match([]byte(found)) {
						add(found, id)
					}
				}
				search(own, id)
			}
		}
	}
	bound := func(e *Entry) bool { return e.Methods == Connect && len(e.ClientIDs) > 0 }
	if !slices.ContainsFunc(r.Entries, bound) {
		search(anyID(), "")
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

// examples returns actions that an entry allows to a principal, which are enough to find a topic that
// another client may not use.
func (e *Entry) examples(who *Principal, m Method, other *Client) (all []string) {
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
		return []string{sample(text), sample(strings.ReplaceAll(text, "*", "x"))}
	}
	b, ok := (&Entry{levels: e.levels}).bind(who)
	if !ok {
		return nil
	}
	if m == Subscribe {
		all = append(all, strings.Join(b.levels, "/"))
	}
	level, most := "x", len(b.levels) // a level that no rule names, and more levels than any rule has
	for _, o := range other.topics {
		for slices.Contains(o.levels, level) {
			level += "x"
		}
		most = max(most, len(o.levels)+1)
	}
	levels := slices.Clone(b.levels)
	for i, wild := range b.wild {
		if wild {
			levels[i] = level
		}
	}
	topic := strings.Join(levels, "/")
	all = append(all, topic)
	if n := len(b.levels) - 1; b.levels[n] == wildAll && b.wild[n] {
		for range most - n {
			topic += "/" + level
			all = append(all, topic)
		}
		if n > 0 {
			all = append(all, strings.Join(levels[:n], "/"))
		}
	}
	return all
}
