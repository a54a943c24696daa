package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/wire"
)

// A trial is what an actor may do.
type trial struct {
	who     Principal
	clients []caller // those that may connect or, if none may, all; not empty, if tried
	may     []bool   // for each of steps: whether one of the clients may; empty = not tried
	reply   string   // another topic for replies that the rules name, such as replies/ann; "" = none
}

// A caller is a principal that fits an alternative.
type caller struct {
	Principal
	listed bool   // a Connect lists its client id
	may    []bool // for each of steps
}

// The steps of a client of the store: indices of steps.
const (
	stepConnect = iota
	stepRequest
	stepWatch
	stepResponse // and those after it: the responseForms
	stepKeys     = -1
)

func steps(clientID string) []Action {
	all := []Action{{Method: Connect}, {Publish, wire.RequestTopic}, {Subscribe, wire.NotifyFilter(clientID)}}
	for _, f := range responseForms(clientID) {
		all = append(all, Action{Subscribe, f[1]})
	}
	return all
}

// maxCallers is the number of client ids that are tried for one actor.
const maxCallers = 16

// callers returns principals like who that fit the alternative. Their client ids are the alternative's, or those that the
// rules distinguish.
func (a alternative) callers(who Principal, rules []*Rule) []caller {
	all := []caller{{Principal: who}}
	add := func(who Principal, listed bool) {
		same := func(c caller) bool { return c.ClientID == who.ClientID && a.id == "" }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].listed = all[i].listed || listed
		} else if who.ClientID != "" {
			all = append(all, caller{Principal: who, listed: listed})
		}
	}
	for _, r := range rules {
		for _, e := range r.connects {
			if len(all) > maxCallers {
				return all
			}
			for _, pattern := range e.ClientIDs[:min(len(e.ClientIDs), maxCallers)] {
				if a.id != "" {
					if fits, ok := a.valuesFor(who, pattern); ok {
						add(fits, false)
					}
					continue
				}
				other := who
				for _, star := range []string{"*", "", "x"} {
					other.ClientID = fitting(strings.ReplaceAll(pattern, "*", star), &who)
					if (star == "*" || strings.Contains(pattern, "*")) && e.fits(&other) {
						add(other, other.ClientID == pattern)
					}
				}
			}
		}
		for _, e := range r.topics {
			if len(all) > maxCallers || a.id != "" {
				return all
			}
			for _, id := range e.owners() {
				other := who
				other.ClientID = id
				add(other, false)
			}
		}
	}
	return all
}

// walk finds what the rules allow to principals like who, which fit an alternative.
func (a alternative) walk(who Principal, rules []*Rule) (t trial) {
	t.who, t.clients = who, a.callers(who, rules)
	refused := func(c caller) bool { return connect(&c.Principal, rules) == nil }
	if connects := slices.DeleteFunc(slices.Clone(t.clients), refused); len(connects) > 0 {
		t.clients = connects
	}
	for i, c := range t.clients {
		client := bindRules(c.Principal, rules, false)
		t.clients[i].may = mayDo(client)
		t.reply = cmp.Or(t.reply, client.namedReply())
		if t.may == nil {
			t.may = slices.Clone(t.clients[i].may)
		}
		for step, may := range t.clients[i].may {
			t.may[step] = t.may[step] || may
		}
	}
	return t
}

// client returns the first of the callers that may connect or, if none may, the first.
func (a alternative) client(who Principal, rules []*Rule) (c Principal, connects bool) {
	all := a.callers(who, rules)
	i := slices.IndexFunc(all, func(c caller) bool { return connect(&c.Principal, rules) != nil })
	return all[max(i, 0)].Principal, i >= 0
}

// mayDo returns for each of steps whether a client may do it.
func mayDo(c *Client) (may []bool) {
	for step, action := range steps(c.who.ClientID) {
		may = append(may, c.Allowed(action) != nil && (step < stepResponse || c.MayReplyTo(action.On)))
	}
	return may
}

// namedReply returns a topic that a rule names as one for replies, and on which the client may get them, or "".
func (c *Client) namedReply() string {
	tried := 0
	for _, b := range c.topics {
		name := strings.ToLower(b.entry.Text)
		if tried > maxCallers {
			return ""
		} else if b.entry.Methods != Subscribe || !strings.Contains(name, "reply") && !strings.Contains(name, "replies") && !strings.Contains(name, "respon") {
			continue
		}
		tried++
		levels := slices.Clone(b.levels)
		for i, wild := range b.wild {
			if wild {
				levels[i] = "x"
			}
		}
		if topic := strings.Join(levels, "/"); !wire.IsForbiddenResponseTopic([]byte(topic)) && c.MayReplyTo(topic) {
			return topic
		}
	}
	return ""
}
