package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// Check returns the mistakes in the policy, in the order of their lines: those of Findings, journeys of
// clients that break although other rights show that they are meant, and journeys that reach what belongs to
// other clients. The rules themselves decide about each journey, and a mend is tried before it is reported. Check
// judges each resource by itself, because a port of the broker has one. Findings below least are left out. Once ctx is
// done, findings are missing.
func (p *Policy) Check(ctx context.Context, least Severity) []Finding {
	all := slices.Clone(p.Findings)
	rules := make([][]*Rule, len(p.Resources))
	for _, r := range p.Rules {
		if r.Resource >= 0 {
			rules[r.Resource] = append(rules[r.Resource], r)
		}
	}
	for i, res := range p.Resources {
		c := checker{ctx: ctx, least: least, file: res.File, policy: &Policy{Rules: rules[i], Resources: p.Resources}, unused: suffix(rules[i]), open: make(map[opened][]*actor), values: make(map[*Rule]map[string]*tokenValues), kinds: make(map[int][]string), near: make(map[string]string), lacks: make(map[lackID]*lack), locked: make(map[*Rule][]*Entry), watches: make(map[*actor]bool), work: maxWork, left: make(map[*Rule]int)}
		c.policy.indexRules()
		c.run()
		all = append(all, c.all...)
	}
	all = slices.DeleteFunc(all, func(f Finding) bool { return f.Severity < least || p.ignored[f.File].has(f) })
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return slices.CompactFunc(all, func(a, b Finding) bool { return a.File == b.File && a.Line == b.Line && a.Message == b.Message })
}

// maxWork is the number of entries that are bound to clients until only one client of each rule is tried. A finding then
// says that the others were not.
const maxWork = 1 << 19

type checker struct {
	ctx    context.Context
	least  Severity
	file   string
	policy *Policy // the rules of one resource
	all    []Finding
	unused string // see suffix
	work   int
	left   map[*Rule]int // clients of a rule that were not tried, see maxWork

	actors []*actor
	open   map[opened][]*actor
	kinds  map[int][]string    // by step, the kinds of actors that may do it
	first  map[*Rule][]*actor  // the actors that a rule names
	claims map[string][]*actor // those that may connect with a client id
	ids    map[string]bool     // that rules are for
	asked  map[string]asks     // of attributes
	near   map[string]string   // what nearly returned
	dotted bool                // a dot separates the levels of a key

	values  map[*Rule]map[string]*tokenValues // by token
	locked  map[*Rule][]*Entry                // the keys of locks that a rule lets its principals write
	readers []*actor                          // a few of those that may read keys
	watches map[*actor]bool                   // of readers: may watch its own keys, and only them

	lacks  map[lackID]*lack // of a rule's actors
	lacked []*lack          // in their order
}

// A Mend is a change of a policy that was tried: with it, what the finding says is no longer so, and nobody but the
// principals that it names may do more.
type Mend struct {
	Add    *Rule         // a rule to add
	Remove *Rule         // a rule to remove
	Old    *Entry        // an entry to replace by New
	New    func() *Entry // the entry in place of Old; nil = none
}

// With returns the policy with a mend.
func (p *Policy) With(m *Mend) *Policy {
	next := &Policy{Resources: p.Resources, Attributes: p.Attributes}
	for _, r := range p.Rules {
		switch {
		case r == m.Remove:
			continue
		case m.Old != nil && r == m.Old.Rule:
			changed := *r
			changed.Entries = nil
			for _, e := range r.Entries {
				if e != m.Old {
					changed.Entries = append(changed.Entries, e)
				} else if m.New != nil {
					changed.Entries = append(changed.Entries, m.New())
				}
			}
			changed.summarize()
			r = &changed
		}
		next.Rules = append(next.Rules, r)
	}
	if m.Add != nil {
		m.Add.summarize()
		next.Rules = append(next.Rules, m.Add)
	}
	return next
}

func (e *Entry) changed(text string) *Entry {
	other := &Entry{Rule: e.Rule, Line: e.Line, Path: e.Path, Methods: e.Methods, ClientIDs: e.ClientIDs, ids: e.ids, Type: e.Type, Text: text}
	switch {
	case e.Methods == Connect:
	case e.Type != "":
		other.setKey()
	default:
		other.setTopic()
	}
	return other
}

// connecting returns an entry like e with other client ids.
func (e *Entry) connecting(ids ...string) *Entry {
	other := e.changed(e.Text)
	other.ClientIDs, other.ids = ids, newIDs(ids)
	return other
}

// by returns the mend that replaces an entry.
func (e *Entry) by(better *Entry) *Mend {
	return &Mend{Old: e, New: func() *Entry { return better }}
}

// withID returns the mend that replaces one client id of an entry.
func (e *Entry) withID(i int, id string) *Mend {
	return &Mend{Old: e, New: func() *Entry {
		ids := slices.Clone(e.ClientIDs)
		ids[i] = id
		return e.connecting(ids...)
	}}
}

func (c *checker) prove(all ...Proof) { c.all[len(c.all)-1].Proofs = all }

func (c *checker) find(id string, line int, severity Severity, mend *Mend, hint, message string, args ...any) {
	c.all = append(c.all, Finding{ID: id, File: c.file, Line: line, Severity: severity, Message: fmt.Sprintf(message, args...), Hint: hint, Mend: mend})
}

// An alternative is one of the ways in which a rule names principals, or several of them at once.
type alternative struct {
	user, id string
	set      map[string]string
}

// alternatives returns the principals of a rule. Callers must not modify the list.
func (r *Rule) alternatives() (all []alternative) {
	if r.listed != nil {
		return r.listed
	}
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

// opened identifies the actors of a kind that may do a step.
type opened struct {
	step int
	kind string
}

// opens notes that an actor may do a step.
func (c *checker) opens(a *actor, step int) {
	at := opened{step, a.kind}
	if len(c.open[at]) == 0 {
		c.kinds[step] = append(c.kinds[step], a.kind)
	}
	c.open[at] = append(c.open[at], a)
}

// kindOf returns what an alternative names: no client fits two of a kind.
func (a alternative) kindOf() string {
	switch {
	case a.user != "":
		return "user"
	case a.id != "":
		return "client id"
	}
	return fmt.Sprintf("%q", slices.Sorted(maps.Keys(a.set)))
}

// with returns the alternative of a client that fits two, if there can be one.
func (a alternative) with(b alternative) (both alternative, ok bool) {
	if a.user != "" && b.user != "" && a.user != b.user || a.id != "" && b.id != "" && a.id != b.id {
		return both, false
	}
	for name, value := range a.set {
		if other, ok := b.set[name]; ok && other != value {
			return both, false
		}
	}
	both = alternative{cmp.Or(a.user, b.user), cmp.Or(a.id, b.id), maps.Clone(a.set)}
	if both.set == nil {
		both.set = make(map[string]string)
	}
	maps.Copy(both.set, b.set)
	return both, true
}

func (r *Rule) lineOf(a alternative) int { return cmp.Or(r.lines[a.key()], r.Line) }

func (c *checker) run() {
	c.first, c.claims, c.ids = make(map[*Rule][]*actor), make(map[string][]*actor), make(map[string]bool)
	for _, r := range c.policy.Rules {
		for _, id := range r.ClientIDs {
			c.ids[id] = true
		}
	}
	seen := make(map[string]*actor)
	for _, r := range c.policy.Rules {
		for _, alt := range r.alternatives() {
			if c.ctx.Err() != nil {
				return
			}
			key := alt.key()
			a := seen[key]
			if a == nil {
				a = c.newActor(r, alt)
				seen[key] = a
				c.actors = append(c.actors, a)
				for step, may := range a.bare.may {
					if may {
						c.opens(a, step)
					}
				}
				for _, client := range a.full.clients {
					if client.may[stepConnect] {
						c.claims[client.ClientID] = append(c.claims[client.ClientID], a)
					}
				}
				if a.keys != 0 {
					c.opens(a, stepKeys)
				}
				if a.keys&Read != 0 && len(a.full.may) > 0 && len(c.readers) < 8 {
					c.readers = append(c.readers, a)
					c.watches[a] = a.full.may[stepWatch] && c.ask(a.full.who).Allowed(Action{Subscribe, wire.NotifyFilter("other" + c.unused)}) == nil
				}
			}
			c.first[r] = append(c.first[r], a)
		}
	}
	for i, a := range c.actors {
		if c.ctx.Err() != nil {
			return
		}
		if len(a.bare.may) > 0 {
			c.journeys(a)
		}
		if i+1 == len(c.actors) || c.actors[i+1].rule != a.rule {
			c.flush()
		}
	}
	separates := func(e *Entry) bool {
		i := strings.IndexByte(e.Text, '.')
		return e.Type != "" && i > 0 && i+1 < len(e.Text) && strings.IndexByte("*+", e.Text[i+1]) < 0
	}
	c.dotted = slices.ContainsFunc(c.policy.Rules, func(r *Rule) bool { return slices.ContainsFunc(r.Entries, separates) })
	for _, r := range c.policy.Rules {
		if c.ctx.Err() != nil {
			return
		}
		if n := c.left[r]; n > 0 {
			c.find(idUntried, r.Line, Warning, nil, "split the rule into resources of fewer principals or topics, or ask with sscli policy test", "%d of the principals of %s were not tried: together with its topics they are too many", n, r.Name)
		}
		c.texts(r)
		c.isolation(r)
		c.prefixes(r)
	}
	c.identities()
	c.redundant()
}

// maxNames is the number of attributes that are compared with each other.
const maxNames = 256

// obsolete has the beginnings of topics that the state store no longer uses (protocol.md 1.1).
var obsolete = []string{"$services/statestore/", "$store/", "statestore/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/"}

// someone returns a few of the principals of a rule as text.
func (r *Rule) someone() string {
	all := r.alternatives()
	some := (&Rule{everybody: r.everybody, listed: all[:min(len(all), 4)]}).Principals()
	return listed(some, len(all))
}

// listed returns a few of n names as text.
func listed(names []string, n int) string {
	const most = 3
	if n > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
	return strings.Join(names, " and ")
}
