package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

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
	c.unused = suffix(c.rules)
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
			w.walk(c.unused)
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
	line    int
	rules   []*Rule  // all that apply to the alternative
	clients []caller // those that may connect or, if none may, all
	may     []bool   // for each of steps: whether one of the clients may
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
)

func steps(clientID string) []Action {
	all := []Action{{Method: Connect}, {Publish, wire.RequestTopic}, {Subscribe, wire.NotifyFilter(clientID)}}
	for _, f := range responseForms(clientID) {
		all = append(all, Action{Subscribe, f[1]})
	}
	return all
}

// callers returns principals that fit the alternative. Their client ids are the alternative's, or those that the rules
// distinguish.
func (w *way) callers(unused string) []caller {
	who := w.example(unused, w.rules...)
	all := []caller{{Principal: who}}
	add := func(who Principal, listed bool) {
		same := func(c caller) bool { return c.ClientID == who.ClientID && w.id == "" }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].listed = all[i].listed || listed
		} else if who.ClientID != "" {
			all = append(all, caller{Principal: who, listed: listed})
		}
	}
	for _, r := range w.rules {
		for _, e := range r.Entries {
			if w.id != "" {
				for _, pattern := range e.ClientIDs {
					if fits, ok := w.valuesFor(who, pattern); ok {
						add(fits, false)
					}
				}
				continue
			}
			other := who
			for _, pattern := range e.ClientIDs {
				for _, star := range []string{"*", "", "x"} {
					other.ClientID = fitting(strings.ReplaceAll(pattern, "*", star), &who)
					if e.Methods == Connect && (star == "*" || strings.Contains(pattern, "*")) && e.fits(&other) {
						add(other, other.ClientID == pattern)
					}
				}
			}
			for _, id := range e.owners() {
				other.ClientID = id
				add(other, false)
			}
		}
	}
	return all
}

// walk finds what the rules allow to principals that fit the alternative.
func (w *way) walk(unused string) {
	broker := &Policy{}
	for _, r := range w.rules {
		short := *r
		short.Entries = slices.DeleteFunc(slices.Clone(r.Entries), func(e *Entry) bool { return e.Type != "" })
		broker.Rules = append(broker.Rules, &short)
	}
	all := w.callers(unused)
	for i, c := range all {
		client := broker.For(c.Principal)
		for _, a := range steps(c.ClientID) {
			all[i].may = append(all[i].may, client.Allowed(a) != nil)
		}
	}
	w.clients = slices.DeleteFunc(slices.Clone(all), func(c caller) bool { return !c.may[stepConnect] })
	if len(w.clients) == 0 {
		w.clients = all
	}
	w.may = make([]bool, len(all[0].may))
	for _, c := range w.clients {
		for i, may := range c.may {
			w.may[i] = w.may[i] || may
		}
	}
}

// owners returns the client ids that a topic of the store names, in plain text or in hexadecimal.
func (e *Entry) owners() (all []string) {
	rest, notify := strings.CutPrefix(e.Text, wire.NotifyTopics)
	if !notify {
		var own bool
		if rest, own = strings.CutPrefix(e.Text, "clients/"); !own || e.levels == nil {
			return nil
		}
	}
	id, _, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(id, "+#{") || id == "statestore" {
		return nil
	}
	if !notify {
		all = []string{id}
	}
	if plain := unhex(id); utf8.ValidString(plain) {
		all = append(all, plain)
	}
	return all
}

// elsewhere returns an alternative that a client of w may fit too, and whose rules allow a step; "" = none.
func (c *checker) elsewhere(w *way, step int) string {
	for _, other := range c.open[step] {
		if other == w || !w.overlaps(other.alternative) {
			continue
		}
		if w.id != "" {
			both := way{alternative: alternative{other.user, w.id, other.set}, rules: other.rules}
			if both.walk(c.unused); !both.may[step] {
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
	// some reports that only some of the clients may do one of the steps.
	some := func(hint, what, consequence string, steps ...int) {
		var listed, others []string
		for _, client := range w.clients {
			switch {
			case w.id != "" || slices.ContainsFunc(steps, func(step int) bool { return client.may[step] }):
			case client.listed:
				listed = append(listed, client.ClientID)
			default:
				others = append(others, client.ClientID)
			}
		}
		if len(listed) > 0 {
			who := " as " + listed[0]
			if n := len(listed) - 1; n > 0 {
				who += fmt.Sprintf(" and %d more", n)
			}
			c.lack(w.alternative, w.line, Warning, hint, "no rule allows "+what+" for "+whoever+who+consequence)
		} else if len(others) > 0 {
			c.lack(w.alternative, w.line, Info, hint, "no rule allows "+what+" for "+whoever+" as other clients, such as "+others[0]+consequence)
		}
	}
	need := func(step int, severity Severity, hint, what, consequence string) {
		if !w.may[step] {
			lack(c.elsewhere(w, step), severity, hint, what, consequence)
		} else if step != stepConnect {
			some(hint, what, consequence, step)
		}
	}
	need(stepConnect, Error, "brokerResources: - method: Connect", "Connect", "")
	if methods == 0 {
		return
	}
	need(stepRequest, Error, "method: Publish, topics: ["+wire.RequestTopic+"]", "Publish on the topic of requests", ": the keys cannot be used")
	var missing, hints []string
	own, other, id := false, "", w.clients[0].ClientID
	var responses []int
	for i, f := range responseForms(id) {
		by := ""
		responses = append(responses, stepResponse+i)
		if w.may[stepResponse+i] {
			own = true
		} else if by = c.elsewhere(w, stepResponse+i); by == "" {
			missing = append(missing, f[0])
			hints = append(hints, strings.ReplaceAll(strings.ReplaceAll(f[1], id, "{principal.clientId}"), wire.HexID(id), "+"))
		}
		other = cmp.Or(other, by)
	}
	const hint, what, consequence = "method: Subscribe, topics: [\"clients/{principal.clientId}/#\"]", "Subscribe on a response topic", ": the store's replies do not arrive"
	if !own {
		lack(other, Error, hint, what, consequence)
	} else if some(hint, what, consequence, responses...); len(missing) > 0 {
		c.lack(w.alternative, w.line, Info, "method: Subscribe, topics: [\""+strings.Join(hints, `", "`)+"\"]", "no rule allows Subscribe on the response topics of "+strings.Join(missing, " and ")+" for "+whoever)
	}
	if methods&Read != 0 {
		need(stepWatch, Warning, "method: Subscribe, topics: [\""+wire.NotifyTopics+"+/command/notify/+\"]", "Subscribe on notifications", ": watch is refused")
	}
}
