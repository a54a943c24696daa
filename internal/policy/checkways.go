package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// responseForms are the topics for replies to a client: who uses each, and the topic.
func responseForms(clientID string) [][2]string {
	const store = "/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"
	return [][2]string{
		{"sscli", wire.ResponseTopic(clientID)},
		{"the Rust SDK", "clients/" + clientID + "/services" + store + "/response"},
		{"the .NET SDK", "clients/" + clientID + store},
		{"the Go SDK", wire.HexResponseTopic(clientID)},
	}
}

// ways checks that all who may use a key can also connect, send requests and get replies.
func (c *checker) ways() {
	byName := make(map[string][]*Rule) // the rules of each alternative
	for _, r := range c.rules {
		for _, a := range r.alternatives() {
			if k := a.key(); len(byName[k]) == 0 || byName[k][len(byName[k])-1] != r {
				byName[k] = append(byName[k], r)
			}
		}
	}
	for _, r := range c.rules {
		store := slices.IndexFunc(r.Entries, func(e *Entry) bool { return e.Type != "" && e.never == "" })
		for _, a := range r.alternatives() {
			key := a.key()
			if len(r.Entries) == 0 || c.seen[key] {
				continue
			}
			c.seen[key] = true
			var rules []*Rule
			for _, k := range a.weaker() {
				rules = append(rules, byName[k]...)
			}
			line := r.Line
			if store >= 0 {
				line = r.Entries[store].Line
			}
			c.way(a, rules, line)
		}
		for _, l := range c.lacks {
			who := l.who[0]
			if n := len(l.who) - 1; n > 0 {
				who += fmt.Sprintf(" and %d more", n)
			}
			l.Message = fmt.Sprintf(l.Message, who)
			c.all = append(c.all, l.Finding)
		}
		c.lacks = nil
	}
}

// way checks one alternative, to which all of rules apply.
func (c *checker) way(a alternative, rules []*Rule, line int) {
	who := Principal{ClientID: cmp.Or(a.id, "client-1"), Username: a.user, Attributes: a.set}
	methods := Method(0)
	for _, r := range rules {
		for _, e := range r.Entries {
			if e.Type != "" && e.never == "" {
				methods |= e.Methods
			}
			for _, pattern := range e.ClientIDs {
				other := who
				if other.ClientID = fitting(pattern, &who); a.id == "" && e.Methods == Connect && e.fits(&other) {
					who = other
				}
			}
		}
	}
	cl := (&Policy{Rules: rules}).For(who)
	if cl.Allowed(Action{Method: Connect}) == nil {
		c.lack(a, line, Error, "brokerResources: - method: Connect", "no rule allows Connect for %s")
	}
	if methods == 0 {
		return
	}
	if cl.Allowed(Action{Publish, wire.RequestTopic}) == nil {
		c.lack(a, line, Error, "method: Publish, topics: ["+wire.RequestTopic+"]", "no rule allows Publish on the topic of requests for %s: the keys cannot be used")
	}
	var missing, hints []string
	forms := responseForms(who.ClientID)
	for _, f := range forms {
		if cl.Allowed(Action{Subscribe, f[1]}) == nil {
			missing = append(missing, f[0])
			hints = append(hints, strings.ReplaceAll(strings.ReplaceAll(f[1], who.ClientID, "{principal.clientId}"), wire.HexID(who.ClientID), "+"))
		}
	}
	switch len(missing) {
	case 0:
	case len(forms):
		c.lack(a, line, Error, "method: Subscribe, topics: [\"clients/{principal.clientId}/#\"]", "no rule allows Subscribe on a response topic for %s: the store's replies do not arrive")
	default:
		c.lack(a, line, Info, "method: Subscribe, topics: [\""+strings.Join(hints, `", "`)+"\"]", "no rule allows Subscribe on the response topics of "+strings.Join(missing, " and ")+" for %s")
	}
	if methods&Read != 0 && cl.Allowed(Action{Subscribe, wire.NotifyFilter(who.ClientID)}) == nil {
		c.lack(a, line, Warning, "method: Subscribe, topics: [\""+wire.NotifyTopics+"+/command/notify/+\"]", "no rule allows Subscribe on notifications for %s: watch is refused")
	}
}
