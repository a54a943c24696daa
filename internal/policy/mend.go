package policy

import (
	"fmt"
	"maps"
	"slices"
)

// A lack is a step that clients of one or more actors miss.
type lack struct {
	Finding // without Message
	lackText
	actors []*actor
	step   func(*actor, []*Rule) bool // with the mend, the actor has what it lacks
	entry  func(*actor) *Entry        // of the mend
	old    *Entry                     // the entry that the mend replaces; nil = a rule is added
}

// A lackText is the message of a lack, apart from the clients.
type lackText struct{ before, after string }

// A lackID is equal for the lacks that are one finding.
type lackID struct {
	line int
	lackText
}

func (c *checker) lack(a *actor, l lack) {
	if l.Severity < c.least {
		return
	}
	id := lackID{l.Line, l.lackText}
	known := c.lacks[id]
	if known == nil {
		known = &l
		known.File = c.file
		c.lacks[id] = known
		c.lacked = append(c.lacked, known)
	}
	known.actors = append(known.actors, a)
}

// flush reports the lacks of a rule's actors, each with a mend if one helps.
func (c *checker) flush() {
	for _, l := range c.lacked {
		who := l.actors[0].key()
		if n := len(l.actors) - 1; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
		l.Message = l.before + who + l.after
		if l.entry != nil {
			c.mend(l)
		}
		c.all = append(c.all, l.Finding)
	}
	c.lacked = nil
	clear(c.lacks)
}

// mend adds a mend to a lack, if it helps all actors, and takes the step from no other actor of the rule.
func (c *checker) mend(l *lack) {
	m := &Mend{Old: l.old}
	first := l.entry(l.actors[0])
	if first == nil {
		return
	}
	if l.old != nil {
		m.New = func() *Entry { return first }
		l.Hint = fmt.Sprintf("write %q, for %s", first.Text, l.old.Rule.someone())
		if first.Methods != l.old.Methods {
			l.Hint = fmt.Sprintf("method: %s, for %s", first.Methods, l.old.Rule.someone())
		}
	} else {
		m.Add = &Rule{Resource: l.actors[0].rule.Resource, Line: l.Line, Name: "the new rule", Entries: []*Entry{first}}
		first.Rule = m.Add
		ids := make(map[string]bool)
		for _, a := range l.actors {
			e := l.entry(a)
			if e == nil || e.Text != first.Text {
				return
			}
			for _, id := range e.ClientIDs {
				ids[id] = true
			}
			switch {
			case a.user != "":
				m.Add.Usernames = append(m.Add.Usernames, a.user)
			case a.id != "":
				m.Add.ClientIDs = append(m.Add.ClientIDs, a.id)
			default:
				m.Add.Attributes = append(m.Add.Attributes, a.set)
			}
		}
		if first.Methods == Connect {
			first.ClientIDs = slices.Sorted(maps.Keys(ids))
			first.ids = newIDs(first.ClientIDs)
		}
		l.Hint = "add " + m.Add.Flow()
		if r := l.actors[0].rule; len(l.actors) == len(r.alternatives()) && slices.Equal(m.Add.Principals(), r.Principals()) {
			l.Hint = "add to the brokerResources of " + r.Name + ": - " + m.Add.resources()[0].flow()
		}
	}
	var near, with []*Rule // of the last actor
	actors := l.actors
	if l.old != nil {
		actors = append(slices.Clone(actors), c.first[l.old.Rule]...)
	}
	for i, a := range actors {
		if c.ctx.Err() != nil {
			return
		}
		if i >= len(l.actors) && (len(a.full.clients) == 0 || !l.step(a, a.near)) {
			continue
		}
		if with == nil || !slices.Equal(near, a.near) {
			near, with = a.near, (&Policy{Rules: a.near}).With(m).Rules
		}
		if !l.step(a, with) {
			l.Hint = ""
			return
		}
	}
	l.Mend = m
}

// commonEnd returns the length of what two texts end with, after what they begin with.
func commonEnd(a, b string) int {
	first, n := common(a, b), 0
	for n < min(len(a), len(b))-first && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
