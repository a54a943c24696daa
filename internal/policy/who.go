package policy

import (
	"context"
	"slices"
	"strings"
)

// A Holder is a principal that a rule allows an action.
type Holder struct {
	Principals string // in the words of the rule
	If         string // what the client must be besides; "" = nothing
	Action     Action
	Entry      *Entry
	Example    Principal // a client to which the rules allow the action
	Connects   bool      // the example may connect
}

// Who returns who may do an action, by each rule that allows it. The rules decided about the example of each. Once ctx is
// done, some are missing.
func (p *Policy) Who(ctx context.Context, a Action) (all []Holder) {
	unused := suffix(p.Rules)
	connects := make(map[string]bool) // by the name of the example
	for _, r := range p.Rules {
		for _, e := range r.Entries {
			if ctx.Err() != nil {
				return all
			}
			if e.Methods&a.Method == 0 || e.never != "" || !e.mayAllow(a) {
				continue
			}
			for _, alt := range r.alternatives() {
				if ctx.Err() != nil {
					return all
				}
				who, condition, ok := e.fitting(alt, alt.example(unused, r), a)
				if !ok || alt.user == "" && alt.id == "" && len(alt.set) == 0 {
					continue
				}
				name := who.name()
				if _, known := connects[name]; !known {
					_, connects[name] = alt.client(who, p.rulesFor(&who))
				}
				all = append(all, Holder{alt.key(), condition, a, e, who, connects[name]})
			}
		}
	}
	return all
}

// mayAllow reports whether an entry allows an action to some client.
func (e *Entry) mayAllow(a Action) bool {
	b, ok := e.freed(part.varies).replace(&Principal{})
	return !ok || strings.HasPrefix(a.topic(), "$") || b.matches(&Principal{}, a)
}

// fitting returns a client like who, which fits an alternative, to which the entry allows an action, and what it must be.
func (e *Entry) fitting(alt alternative, who Principal, a Action) (fits Principal, condition string, ok bool) {
	pattern := e.Text
	if e.levels != nil {
		on := strings.Split(a.topic(), "/")
		var keys, values []string
		for i, l := range e.levels {
			if i < len(on) && l[0].varies() {
				keys, values = append(keys, l[0].name()), append(values, on[i])
			}
		}
		pattern = strings.Join(keys, "\x00")
		fits, ok = alt.solve(who, pattern, strings.Join(values, "\x00"))
	} else if e.Type == Pattern {
		fits, ok = alt.solve(who, pattern, a.On)
	} else {
		fits, ok = who, true
	}
	if !ok {
		return fits, "", false
	}
	for _, id := range e.ClientIDs {
		if candidate := fits; alt.id == "" && !strings.Contains(e.Text, tokenStart+tokenClient) {
			if candidate.ClientID = fitting(id, &fits); e.fits(&candidate) {
				fits = candidate
				break
			}
		}
	}
	b, bound := e.bind(&fits)
	if !bound || !b.matches(&fits, a) {
		return fits, "", false
	}
	var conditions []string
	for _, p := range slices.Concat(append(slices.Clone(e.levels), e.key)...) {
		if value, known := fits.value(p.token); known && p.varies() {
			_, fixed := alt.set[strings.TrimPrefix(p.token, tokenAttribute)]
			if own := p.token == tokenUser && alt.user != "" || p.token == tokenClient && alt.id != "" || fixed; !own {
				conditions = append(conditions, p.name()+" is "+value)
			}
		}
	}
	if len(e.ClientIDs) > 0 {
		conditions = append(conditions, "the client id is like "+strings.Join(e.ClientIDs, " or "))
	}
	return fits, strings.Join(slices.Compact(conditions), " and "), true
}

// Unused returns the entries that allowed none of some deeds, or some of them once ctx is done.
func (p *Policy) Unused(ctx context.Context, deeds []Deed) (all []*Entry) {
	used := make(map[*Entry]bool)
	lookups := p.Lookups()
	for _, d := range deeds {
		if ctx.Err() != nil {
			return nil
		}
		if d.Method == Connect {
			for _, r := range p.rulesFor(&d.Principal) {
				for _, e := range r.connects {
					used[e] = used[e] || e.fits(&d.Principal)
				}
			}
			continue
		}
		lookups.Of(d.Principal).find(d.Action, func(b *bound) bool {
			used[b.entry] = true
			return false
		})
	}
	for _, r := range p.Rules {
		for _, e := range r.Entries {
			if !used[e] {
				all = append(all, e)
			}
		}
	}
	return all
}

// Examples returns a client for each principal that the rules name, with made-up values of what else they ask for. Once ctx is
// done, some are missing.
func (p *Policy) Examples(ctx context.Context) (all []Principal) {
	seen, unused := make(map[string]bool), suffix(p.Rules)
	for _, r := range p.Rules {
		for _, a := range r.alternatives() {
			if seen[a.key()] || ctx.Err() != nil {
				continue
			}
			seen[a.key()] = true
			who := a.example(unused)
			near := p.rulesFor(&who)
			client, _ := a.client(a.example(unused, near...), near)
			all = append(all, client)
		}
	}
	return all
}

// Rights returns examples of what the rules for a client allow, without Connect: topics first.
func (p *Policy) Rights(who Principal) (all []Action) {
	c := p.For(who)
	for _, b := range slices.Concat(c.topics, c.keys) {
		for _, m := range b.entry.Methods.Each() {
			if examples := b.entry.examples(&who, m, nil); len(examples) > 0 {
				all = append(all, Action{m, examples[0]})
			}
		}
	}
	return all
}
