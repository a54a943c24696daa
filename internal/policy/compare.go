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
// client ids that the rules tell apart. If the other policy allows only a part of what an entry allows, an example of the
// rest is found, unless the search exceeds searchLimit. Once ctx is done, changes are missing. A change may be missed if it
// depends on a certain value of a token, concerns only clients that fit several principals, or only a client id that one of
// many entries of the other policy names.
func Compare(ctx context.Context, old, next *Policy, deeds []Deed) []Change {
	c := comparison{ctx: ctx, old: old, next: next, seen: make(map[string]bool), makes: [2]*Lookups{old.Lookups(), next.Lookups()}, others: make(map[otherwise][]granted)}
	for _, d := range deeds {
		if ctx.Err() != nil {
			return c.changes
		}
		c.compare(d, d.name(), &Entry{}, c.makes[0].Of(d.Principal).Allowed(d.Action), c.makes[1].Of(d.Principal).Allowed(d.Action))
	}
	unused := suffix(slices.Concat(old.Rules, next.Rules))
	// Only for the principals of a rule that differs can anything differ, and only in what the rule allows.
	pairs, texts, in := [][2]*Policy{{old, next}, {next, old}}, make(map[*Rule]string), make(map[string]int)
	for i, pair := range pairs {
		for _, r := range pair[0].Rules {
			texts[r] = r.Flow()
			in[texts[r]] |= 1 << i
		}
	}
	for _, pair := range pairs {
		for _, r := range pair[0].Rules {
			if in[texts[r]] == 1|2 {
				continue
			}
			for _, alt := range r.alternatives() {
				who := alt.example(unused, r)
				clients := r.clients(alt, who, pair[1].rulesFor(&who))
				refused := func(e example) bool { return old.connect(e.Principal) == nil && next.connect(e.Principal) == nil }
				if connect := slices.DeleteFunc(slices.Clone(clients), refused); len(connect) > 0 {
					clients = connect
				}
				for _, e := range clients {
					if ctx.Err() != nil {
						return c.changes
					}
					c.rule(r, alt, e, pair[1] == old)
				}
			}
		}
	}
	return c.changes
}

// A comparison is the state of Compare.
type comparison struct {
	ctx       context.Context
	old, next *Policy
	changes   []Change
	seen      map[string]bool
	makes     [2]*Lookups
	others    map[otherwise][]granted // see differing
}

// A granted is an entry with one of its methods.
type granted struct {
	*Entry
	method Method
}

// otherwise is a rule, and what clients have in the other policy.
type otherwise struct {
	rule  *Rule
	alike *indexed
}

// differing returns the entries of a rule that not all clients like one have in the other policy.
func (c *comparison) differing(r *Rule, other *Lookup) []granted {
	key := otherwise{r, other.alike}
	all, known := c.others[key]
	if known {
		return all
	}
	for _, e := range r.Entries {
		for _, m := range e.Methods.Each() {
			if m != Connect && !other.alike.have[grantName(e, m)] {
				all = append(all, granted{e, m})
			}
		}
	}
	if len(c.others) > maxKept {
		clear(c.others)
	}
	c.others[key] = all
	return all
}

// compare records a change, unless both policies decide alike. who names the principals for whom it is the same change.
func (c *comparison) compare(d Deed, who string, from, a, b *Entry) bool {
	if (a == nil) == (b == nil) {
		return false
	}
	id := fmt.Sprintf("%q %s %s %q %t", who, d.Method, from.Type, cmp.Or(from.Text, d.On), a != nil)
	if !c.seen[id] {
		c.seen[id] = true
		c.changes = append(c.changes, Change{d, a != nil, a, b, from.Text})
	}
	return true
}

// rule compares what a rule allows to a principal. The rule is one of the new policy if isNew is set.
func (c *comparison) rule(r *Rule, alt alternative, who example, isNew bool) {
	ask := func(e *Entry, m Method, on string, a, b *Entry) bool {
		return c.compare(Deed{Principal: who.Principal, Action: Action{m, on}}, alt.key()+" "+who.id, e, a, b)
	}
	if len(r.connects) > 0 {
		ask(r.connects[0], Connect, "", c.old.connect(who.Principal), c.next.connect(who.Principal))
	}
	if len(r.connects) == len(r.Entries) {
		return
	}
	both := [2]*Lookup{c.makes[0].Of(who.Principal), c.makes[1].Of(who.Principal)}
	other := both[1]
	if isNew {
		other = both[0]
	}
	for _, d := range c.differing(r, other) {
		if c.ctx.Err() != nil {
			return
		}
		e, m := d.Entry, d.method
		if other.own.have[grantName(e, m)] {
			continue
		}
		differs := func(on string) bool {
			return ask(e, m, on, both[0].Allowed(Action{m, on}), both[1].Allowed(Action{m, on}))
		}
		if !slices.ContainsFunc(e.examples(&who.Principal, m, other), differs) {
			if key, found := other.lacks(e, &who.Principal, m); found {
				differs(key)
			}
		}
	}
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
		for _, id := range r.idPatterns() {
			if fits, ok := alt.valuesFor(who, joined(id.parts)); ok {
				all = append(all, example{fits, joined(id.parts)})
			}
		}
		return all
	}
	match := func(id string, entries ...*Entry) *glob.Pattern {
		who := who
		who.ClientID = id
		for _, e := range entries {
			if len(e.ClientIDs) == 0 {
				return anyID()
			} else if p := e.ids.find(&who); p != nil {
				return p.compiled(&who)
			}
		}
		return nil
	}
	lists := [][]*Entry{nil}
	for _, o := range other {
		lists[0] = append(lists[0], o.connects...)
		for _, e := range o.narrow[:min(len(o.narrow), maxCallers-len(lists))] {
			lists = append(lists, []*Entry{e})
		}
	}
	texts := make([]map[string]bool, len(lists)) // of the patterns in each list
	search := func(own *glob.Pattern, pattern string) {
		for i, list := range lists {
			if texts[i] == nil {
				texts[i] = make(map[string]bool)
				for _, e := range list {
					for _, p := range e.ids.patterns() {
						texts[i][joined(p.parts)] = true
					}
				}
			}
			if texts[i][pattern] { // the same pattern matches the same ids
				continue
			}
			if id, found := without(own, func(id string) *glob.Pattern { return match(id, list...) }); found {
				fits := who
				fits.ClientID = id
				all = append(all, example{fits, pattern})
			}
		}
	}
	done := make(map[string]bool)
	for _, p := range r.idPatterns() {
		id, fits := joined(p.parts), who
		own := p.compiled(&who)
		if done[id] || own == nil {
			continue
		}
		done[id] = true
		for _, text := range []string{id, strings.ReplaceAll(id, "*", "x")} {
			if fits.ClientID = fitting(text, &who); own.Match([]byte(fits.ClientID)) {
				all = append(all, example{fits, id})
			}
		}
		search(own, id)
	}
	if !slices.ContainsFunc(r.connects, func(e *Entry) bool { return len(e.ClientIDs) > 0 }) {
		search(anyID(), "")
	}
	return all
}

// name identifies a principal.
func (w Principal) name() string {
	return fmt.Sprintf("%s %q %q", attributesText(w.Attributes), w.Username, w.ClientID)
}

// examples returns actions that an entry allows to a principal, which are enough to find a topic that
// another client may not use; nil = there is none.
func (e *Entry) examples(who *Principal, m Method, other *Lookup) (all []string) {
	switch {
	case e.never != "" || e.own:
		return nil
	case m == Connect:
		return []string{""}
	case e.Type == String, e.Type == Binary:
		return []string{e.exact}
	case e.Type == Pattern:
		text, ok := replaced(e.key, who)
		if !ok {
			return nil
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
	if other != nil {
		level = strings.Repeat("x", 1+max(other.alike.xs, other.own.xs))
		most = max(most, 1+max(other.alike.levels, other.own.levels))
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
