package policy

import (
	"slices"
	"strings"
	"unicode"
)

// locks reports a key of a lock that an actor may only write: to wait for the lock, it reads and watches the key. found is
// true if there is a lock that it may write.
func (c *checker) locks(a *actor) (found bool) {
	var client *Client
	word := func(r rune) bool { return !unicode.IsLetter(r) }
	for _, r := range a.near {
		all, known := c.locked[r]
		if !known {
			for _, e := range r.Entries {
				if e.Methods&Write != 0 && e.never == "" && slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(e.Text), word), isLock) {
					all = append(all, e)
				}
			}
			c.locked[r] = all
		}
		for _, e := range all {
			if found = true; e.Methods&Read != 0 {
				continue
			}
			who := a.full.clients[0].Principal
			examples := e.examples(&who, Write, nil)
			if len(examples) == 0 {
				continue
			}
			if client == nil {
				client = bindRules(who, a.near, true)
			}
			read := Action{Read, examples[0]}
			reads := func(a *actor, rules []*Rule) bool {
				return bindRules(a.full.clients[0].Principal, rules, true).Allowed(read) != nil
			}
			elsewhere := func(both alternative, _ *actor) bool {
				who := both.example(c.unused)
				return c.policy.For(who).Allowed(read) != nil
			}
			if client.Allowed(read) != nil || c.together(a, stepKeys, elsewhere) {
				continue
			}
			both := *e
			both.Methods = Read | Write
			l := lack{step: reads, old: e, entry: func(*actor) *Entry { return (&both).changed(e.Text) }}
			l.Finding = Finding{ID: idLock, Line: e.Line, Severity: Warning, Proofs: []Proof{{Deed: Deed{Principal: who, Action: read}}}}
			l.lackText = lackText{"no rule allows Read on " + e.Text + " for ", ": it cannot wait for the lock, nor see who holds it"}
			c.lack(a, l)
			return true
		}
	}
	return found
}

func isLock(word string) bool {
	return slices.Contains([]string{"lock", "locks", "lease", "leases"}, word)
}
