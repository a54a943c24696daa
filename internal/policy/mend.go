package policy

import (
	"fmt"
	"slices"
	"strings"
)

// A lack is a step that clients of one or more actors miss.
type lack struct {
	Finding
	actors []*actor
	step   func(*actor, []*Rule) bool // with the mend, the actor has what it lacks
	entry  func(*actor) *Entry        // of the mend
	old    *Entry                     // the entry that the mend replaces; nil = a rule is added
}

func (c *checker) lack(a *actor, l lack) {
	for i, known := range c.lacks {
		if known.Line == l.Line && known.Message == l.Message {
			c.lacks[i].actors = append(known.actors, a)
			return
		}
	}
	l.File, l.actors = c.file, []*actor{a}
	c.lacks = append(c.lacks, l)
}

// flush reports the lacks of a rule's actors, each with a mend if one helps.
func (c *checker) flush() {
	for _, l := range c.lacks {
		if l.Severity < c.least {
			continue
		}
		who := l.actors[0].key()
		if n := len(l.actors) - 1; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
		l.Message = strings.Replace(l.Message, whoever, who, 1)
		if l.entry != nil {
			c.mend(&l)
		}
		c.all = append(c.all, l.Finding)
	}
	c.lacks = nil
}

// mend adds a mend to a lack, if it helps all actors.
func (c *checker) mend(l *lack) {
	m := &Mend{Old: l.old}
	if l.old != nil {
		m.New = []*Entry{l.entry(l.actors[0])}
		l.Hint = fmt.Sprintf("write %q, for %s", m.New[0].Text, listed(l.old.Rule.Principals()))
		if m.New[0].Methods != l.old.Methods {
			l.Hint = fmt.Sprintf("method: %s, for %s", m.New[0].Methods, listed(l.old.Rule.Principals()))
		}
	} else {
		m.Add = &Rule{Resource: l.actors[0].rule.Resource, Line: l.Line, Name: "the new rule"}
		for _, a := range l.actors {
			switch e := l.entry(a); {
			case e == nil:
				return
			case len(m.Add.Entries) == 0:
				e.Rule, m.Add.Entries = m.Add, []*Entry{e}
			case e.Methods == Connect:
				first := m.Add.Entries[0]
				for _, id := range e.ClientIDs {
					if !slices.Contains(first.ClientIDs, id) {
						first.ClientIDs = append(slices.Clone(first.ClientIDs), id)
						first.ids = newIDs(first.ClientIDs)
					}
				}
			case e.Text != m.Add.Entries[0].Text:
				return
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
		l.Hint = "add " + m.Add.Flow()
		if slices.Equal(m.Add.Principals(), l.actors[0].rule.Principals()) {
			l.Hint = "add to the brokerResources of " + l.actors[0].rule.Name + ": - " + m.Add.resources()[0].flow()
		}
	}
	for _, a := range l.actors {
		if !l.step(a, (&Policy{Rules: a.near}).With(m).Rules) {
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
