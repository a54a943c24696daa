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
	c.open = make(map[int][]*way)
	unused := suffix(c.rules)
	byRule := make([][]*way, len(c.rules))
	for i, r := range c.rules {
		store := slices.IndexFunc(r.Entries, func(e *Entry) bool { return e.Type != "" && e.never == "" })
		for _, a := range r.alternatives() {
			key := a.key()
			if len(r.Entries) == 0 || c.seen[key] {
				continue
			}
			c.seen[key] = true
			w := &way{alternative: a, line: r.Line}
			for _, k := range a.weaker() {
				w.rules = append(w.rules, byName[k]...)
			}
			if store >= 0 {
				w.line = r.Entries[store].Line
			}
			w.walk(unused)
			byRule[i] = append(byRule[i], w)
			for i, may := range w.may {
				if may {
					c.open[i] = append(c.open[i], w)
				}
			}
		}
	}
	for _, ways := range byRule {
		for _, w := range ways {
			c.way(w)
		}
		for _, l := range c.lacks {
			who := l.who[0]
			if n := len(l.who) - 1; n > 0 {
				who += fmt.Sprintf(" and %d more", n)
			}
			l.Message = strings.Replace(l.Message, whoever, who, 1)
			c.all = append(c.all, l.Finding)
		}
		c.lacks = nil
	}
}

// A way is an alternative with what its rules allow.
type way struct {
	alternative
	line  int
	rules []*Rule // all that apply to the alternative
	who   Principal
	may   []bool // for each of steps
}

// The steps of a client of the store: indices of steps.
const (
	stepConnect = iota
	stepRequest
	stepWatch
	stepResponse // and those after it: the responseForms
)

func steps(clientID string) []Action {
	all := []Action{{Method: Connect}, {Publish, wire.RequestTopic}, {Subscribe, wire.NotifyFilter(clientID)}}
	for _, f := range responseForms(clientID) {
		all = append(all, Action{Subscribe, f[1]})
	}
	return all
}

// walk finds what the rules allow to a principal that fits the alternative, with a client id that may connect if
// there is one.
func (w *way) walk(unused string) {
	w.who = w.example(unused, w.rules...)
	for _, r := range w.rules {
		for _, e := range r.Entries {
			for _, pattern := range e.ClientIDs {
				other := w.who
				if other.ClientID = fitting(pattern, &w.who); w.id == "" && e.Methods == Connect && e.fits(&other) {
					w.who = other
				}
			}
		}
	}
	client := (&Policy{Rules: w.rules}).For(w.who)
	for _, a := range steps(w.who.ClientID) {
		w.may = append(w.may, client.Allowed(a) != nil)
	}
}

// elsewhere returns an alternative that a client of w may fit too, and whose rules allow a step; "" = none.
func (c *checker) elsewhere(w *way, step int) string {
	for _, other := range c.open[step] {
		if other == w || !w.overlaps(other.alternative) {
			continue
		}
		if both := other.who; w.id != "" {
			both.ClientID = w.id
			if (&Policy{Rules: other.rules}).For(both).Allowed(steps(w.id)[step]) == nil {
				continue
			}
		}
		return other.key()
	}
	return ""
}

// way checks one alternative.
func (c *checker) way(w *way) {
	methods := Method(0)
	for _, r := range w.rules {
		for _, e := range r.Entries {
			if e.Type != "" && e.never == "" {
				methods |= e.Methods
			}
		}
	}
	lack := func(other string, severity Severity, hint, what, consequence string) {
		if other != "" {
			c.lack(w.alternative, w.line, Info, hint, "only rules for others, such as "+other+", allow "+what+" for "+whoever)
		} else {
			c.lack(w.alternative, w.line, severity, hint, "no rule allows "+what+" for "+whoever+consequence)
		}
	}
	need := func(step int, severity Severity, hint, what, consequence string) {
		if !w.may[step] {
			lack(c.elsewhere(w, step), severity, hint, what, consequence)
		}
	}
	need(stepConnect, Error, "brokerResources: - method: Connect", "Connect", "")
	if methods == 0 {
		return
	}
	need(stepRequest, Error, "method: Publish, topics: ["+wire.RequestTopic+"]", "Publish on the topic of requests", ": the keys cannot be used")
	var missing, hints []string
	own, other, id := false, "", w.who.ClientID
	for i, f := range responseForms(id) {
		by := ""
		if w.may[stepResponse+i] {
			own = true
		} else if by = c.elsewhere(w, stepResponse+i); by == "" {
			missing = append(missing, f[0])
			hints = append(hints, strings.ReplaceAll(strings.ReplaceAll(f[1], id, "{principal.clientId}"), wire.HexID(id), "+"))
		}
		other = cmp.Or(other, by)
	}
	switch {
	case !own:
		lack(other, Error, "method: Subscribe, topics: [\"clients/{principal.clientId}/#\"]", "Subscribe on a response topic", ": the store's replies do not arrive")
	case len(missing) > 0:
		c.lack(w.alternative, w.line, Info, "method: Subscribe, topics: [\""+strings.Join(hints, `", "`)+"\"]", "no rule allows Subscribe on the response topics of "+strings.Join(missing, " and ")+" for "+whoever)
	}
	if methods&Read != 0 {
		need(stepWatch, Warning, "method: Subscribe, topics: [\""+wire.NotifyTopics+"+/command/notify/+\"]", "Subscribe on notifications", ": watch is refused")
	}
}
