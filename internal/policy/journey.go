package policy

import (
	"fmt"
	"maps"
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

// Clients are the libraries whose topics for replies Journey knows, in the order of responseForms.
var Clients = []string{"sscli", "rust", "dotnet", "go"}

// Journey returns what a client of a library does for a command on a key: get, set, del, scan, watch or lock. ok is false
// for another command or library.
func Journey(command, library, clientID, key string) (all []Action, ok bool) {
	form := slices.Index(Clients, library)
	if form < 0 {
		return nil, false
	}
	notify, reply := Action{Subscribe, wire.NotifyFilter(clientID)}, responseForms(clientID)[form][1]
	all = []Action{{Method: Connect}, {Publish, wire.RequestTopic}, {Subscribe, reply}}
	if !OwnsTopic(clientID, reply) {
		all = append(all, Action{Publish, reply}) // see MayReplyTo
	}
	switch command {
	case "get", "scan":
		return append(all, Action{Read, key}), true
	case "set", "del", "vdel":
		return append(all, Action{Write, key}), true
	case "watch", "keynotify", "lock":
		if library == "go" || library == "dotnet" { // they do not subscribe to their notifications
			all = append(all, Action{Read, key})
		} else {
			all = append(all, notify, Action{Read, key})
		}
		if command == "lock" {
			all = append(all, Action{Write, key})
		}
		return all, true
	}
	return nil, false
}

// Needs returns a step of a request to the store that is denied to a client: to connect, to publish the request or to get
// the reply. ok is false if none is; reply is the response topic that the client must name then, or "" if it need not.
func (c *Client) Needs() (denied Action, reply string, ok bool) {
	all := steps(c.who.ClientID)
	for _, a := range all[:stepWatch] {
		if c.Allowed(a) == nil {
			return a, "", true
		}
	}
	if slices.ContainsFunc(all[stepResponse:], func(a Action) bool { return c.MayReplyTo(a.On) }) {
		return Action{}, "", false
	}
	reply = c.namedReply()
	return all[stepResponse], reply, reply == ""
}

// An actor is a client that fits one alternative of a rule and no other, with what the rules allow it.
type actor struct {
	alternative
	kind string  // what the alternative asks for; no client fits two alternatives of a kind
	rule *Rule   // the first that names it
	line int     // of the alternative in the rule or, if it may use keys, of the first of them
	keys Method  // what it may do with any key
	near []*Rule // the rules that apply to it
	bare trial   // what it can do if it has nothing but what the rules ask for
	full trial   // what it can do if it also has the attributes that the tokens of its rules stand for
}

func (c *checker) newActor(r *Rule, alt alternative) *actor {
	a := &actor{alternative: alt, kind: alt.kindOf(), rule: r, line: r.lineOf(alt)}
	who := alt.example(c.unused)
	a.near = c.policy.rulesFor(&who)
	for _, near := range a.near {
		a.keys |= near.keys
		c.work -= len(near.connects) + len(near.topics)
	}
	if r.keys != 0 && slices.Contains(a.near, r) {
		a.line = r.keyLine
	}
	a.full.who = alt.example(c.unused, a.near...)
	if c.work < 0 && len(c.first[r]) > 0 {
		c.left[r]++ // another actor of the rule was tried
		return a
	}
	a.full = alt.walk(a.full.who, a.near)
	a.bare = a.full
	if len(a.full.who.Attributes) > 0 && alt.user != "" {
		who := a.full.who
		who.Attributes = nil
		a.bare = alt.walk(who, a.near)
	}
	return a
}

// exact reports whether the actor can connect with exactly one client id.
func (a *actor) exact() bool {
	if a.id != "" {
		return true
	}
	for _, r := range a.near {
		for _, e := range r.connects {
			if e.ids == nil || e.ids.wild {
				return false
			}
		}
	}
	return len(a.full.clients) == 1 && a.set == nil
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
	if plain := unhex(id); plain != "" && utf8.ValidString(plain) {
		all = append(all, plain)
	}
	return all
}

// elsewhere returns another alternative that the actor may fit too, so that the rules for both together allow a step; "" =
// none.
func (c *checker) elsewhere(a *actor, step int) (name string) {
	c.together(a, step, func(both alternative, other *actor) bool {
		who := both.example(c.unused)
		near := c.policy.rulesFor(&who)
		if step == stepKeys || both.walk(both.example(c.unused, near...), near).may[step] {
			name = other.key()
		}
		return name != ""
	})
	return name
}

// together reports whether may is true for an actor and another one that may do a step, if one client can fit the
// alternatives of both. It tries eight others at most.
func (c *checker) together(a *actor, step int, may func(both alternative, other *actor) bool) bool {
	tried := 0
	for _, kind := range c.kinds[step] {
		if kind == a.kind {
			continue // no client has two names, or two values of an attribute
		}
		for _, other := range c.open[opened{step, kind}] {
			both, ok := a.with(other.alternative)
			if !ok {
				continue
			}
			if tried++; tried > 8 {
				return false
			}
			if may(both, other) {
				return true
			}
		}
	}
	return false
}

// need reports that an actor's clients may do none of some steps. If mend is set, rules for others may allow them.
func (c *checker) need(a *actor, l lack, what, consequence string, mend bool, step ...int) {
	t := &a.bare
	l.Line = a.line
	may := func(all []bool) bool { return slices.ContainsFunc(step, func(i int) bool { return all[i] }) }
	if may(t.may) {
		c.some(a, l, what, consequence, step...)
		return
	}
	granted := func(client caller) bool { return c.ids[client.ClientID] && may(mayDo(c.ask(client.Principal))) }
	if a.id == "" && slices.ContainsFunc(t.clients, granted) {
		return
	}
	l.lackText = lackText{"no rule allows " + what + " for ", consequence}
	switch attempt := c.attempt(a, step...); {
	case attempt != nil:
		l.Line, l.old = attempt.Line, attempt
		l.Severity = max(l.Severity, Warning)
		l.after += ", although this one seems to be meant for it"
		entry := l.entry
		l.entry = func(a *actor) *Entry { return attempt.changed(entry(a).Text) }
	case may(a.full.may):
		l.ID, l.Severity = idAttribute, Warning
		l.lackText = lackText{what + " is allowed to ", " only with the attribute " + a.madeUp() + ", which no rule asks of it"}
	case l.Severity < c.least:
		return
	default:
		for _, i := range step {
			other := ""
			if mend {
				other = c.elsewhere(a, i)
			}
			if other != "" {
				l.Severity, l.entry = Info, nil
				l.lackText = lackText{"only rules for others, such as " + other + ", allow " + what + " for ", ""}
				break
			}
		}
	}
	l.step = func(a *actor, rules []*Rule) bool { return may(a.walk(a.bare.who, rules).may) }
	who := t.clients[0].Principal
	for _, i := range step {
		action := steps(who.ClientID)[i]
		if i >= stepResponse && c.ask(who).Allowed(action) != nil { // see MayReplyTo
			action.Method = Publish
		}
		if action.Check() == nil {
			l.Proofs = append(l.Proofs, Proof{Deed: Deed{Principal: who, Action: action}})
		}
	}
	c.lack(a, l)
}

func lacking(id string, severity Severity, entry func(*actor) *Entry) lack {
	return lack{Finding: Finding{ID: id, Severity: severity}, entry: entry}
}

// journeys checks what an actor's clients need: to connect and, if they may use keys, to send requests, get replies and
// watch.
func (c *checker) journeys(a *actor) {
	t := &a.bare
	c.need(a, lacking(idConnect, Error, connectEntry), "Connect", "", true, stepConnect)
	var responses []int
	for i := range responseForms("") {
		responses = append(responses, stepResponse+i)
	}
	replies := slices.Contains(t.may[stepResponse:], true)
	chosen := !replies && t.reply != "" && c.attempt(a, responses...) == nil
	if a.keys == 0 {
		if t.may[stepRequest] && (replies || chosen) && c.elsewhere(a, stepKeys) == "" {
			c.lack(a, lack{Finding: Finding{ID: idKeys, Line: a.line, Severity: Warning, Hint: "stateStoreResources: with the keys that it uses"},
				lackText: lackText{"no rule allows any key to ", ", which may send requests and get replies"}})
		}
		return
	}
	half := t.may[stepRequest] != (replies || chosen) // what it has of its own shows that it does not rely on others
	c.need(a, lacking(idRequest, Error, topicEntry(Publish, wire.RequestTopic)), "Publish on the topic of requests", ": the keys cannot be used", !half, stepRequest)
	if chosen {
		c.lack(a, lack{Finding: Finding{ID: idForms, Line: a.line, Severity: Info, Hint: "let its clients name the response topic, such as sscli --response-topic " + t.reply},
			lackText: lackText{"no rule allows Subscribe on the response topics that sscli and the SDKs choose for ", ""}})
	} else {
		c.need(a, lacking(idReplies, Error, replyEntry), "Subscribe on a response topic", ": the store's replies do not arrive", !half, responses...)
	}
	if replies && c.least == Info {
		c.forms(a)
	}
	locks := c.locks(a)
	if a.keys&Read == 0 {
		return
	}
	watch := 0 // others who read and watch
	alone := !slices.ContainsFunc(c.readers, func(other *actor) bool {
		if other == a {
			return false
		}
		watch++
		return !c.watches[other]
	})
	severity, refused := Info, ": watch is refused"
	switch {
	case locks:
		severity, refused = Warning, ": watch is refused, and so is lock, which watches"
	case alone && watch > 1:
		severity = Warning
	}
	entry := topicEntry(Subscribe, wire.NotifyFilter(t.clients[0].ClientID))
	c.need(a, lacking(idWatch, severity, entry), "Subscribe on notifications", refused, true, stepWatch)
}

// connectEntry returns a Connect by which an actor is bound to what its login proves.
func connectEntry(a *actor) *Entry {
	e := &Entry{Methods: Connect, Path: "brokerResources[0]"}
	switch {
	case a.user != "":
		return e.connecting("{principal.username}")
	case a.id != "":
		return e.connecting(QuotePattern(a.id))
	case len(a.set) == 0: // an empty name
		return nil
	}
	name := slices.Min(slices.Collect(maps.Keys(a.set)))
	return e.connecting(tokenStart + tokenAttribute + name + "}-*")
}

// replyEntry returns a Subscribe on topics for replies. A client id with a slash has no topics in plain text.
func replyEntry(a *actor) *Entry {
	topic := "clients/{principal.clientId}/#"
	if strings.ContainsAny(a.id, "/+#") {
		topic = wire.HexResponseTopic(a.id)
	}
	return topicEntry(Subscribe, topic)(a)
}

func topicEntry(m Method, topic string) func(*actor) *Entry {
	return func(*actor) *Entry {
		return (&Entry{Methods: m, Path: "brokerResources[0]"}).changed(topic)
	}
}

// attempt returns an entry that seems to be meant for one of an actor's steps: its text, without # at the end, is nearly what
// the step needs. It is none that names another client.
func (c *checker) attempt(a *actor, step ...int) *Entry {
	all, methods := steps(a.full.clients[0].ClientID), Method(0)
	for _, i := range step {
		methods |= all[i].Method
	}
	another := func(id string) bool { return len(c.claims[id]) > 0 && !slices.Contains(c.claims[id], a) }
	for _, r := range a.near {
		for _, e := range r.topics {
			if e.Methods&methods == 0 || e.levels == nil || len(e.Text) > 256 || slices.ContainsFunc(e.owners(), another) {
				continue
			}
			text := e.Text
			if b, ok := e.bind(&a.full.clients[0].Principal); ok {
				text = strings.Join(b.levels, "/")
			}
			text, begins := strings.CutSuffix(strings.ToLower(text), "/"+wildAll)
			if begins {
				text = strings.ReplaceAll(strings.TrimPrefix(text, "/"), "//", "/")
			}
			for _, i := range step {
				on := strings.ToLower(all[i].On)
				if levels := strings.Split(on, "/"); begins {
					on = strings.Join(levels[:min(len(levels), 1+strings.Count(text, "/"))], "/")
				}
				if e.Methods == all[i].Method && 100*(common(text, on)+commonEnd(text, on)) >= 85*max(len(text), len(on)) && i != stepConnect {
					return e
				}
			}
		}
	}
	return nil
}

// madeUp returns the attributes that the rules need and the actor does not prove.
func (a *actor) madeUp() string {
	var names []string
	for name := range a.full.who.Attributes {
		if _, ok := a.set[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// some reports that only some of an actor's clients may do one of the steps.
func (c *checker) some(a *actor, l lack, what, consequence string, step ...int) {
	if a.id != "" || step[0] == stepConnect {
		return
	}
	may := func(all []bool) bool { return slices.ContainsFunc(step, func(i int) bool { return all[i] }) }
	var listed, others []string
	for _, client := range a.bare.clients {
		switch {
		case may(client.may) || c.ids[client.ClientID] && may(mayDo(c.ask(client.Principal))):
		case client.listed:
			listed = append(listed, client.ClientID)
		default:
			others = append(others, client.ClientID)
		}
	}
	l.entry, l.Proofs, l.before = nil, nil, "no rule allows "+what+" for "
	switch {
	case len(listed) > 0:
		who := " as " + listed[0]
		if n := len(listed) - 1; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
		l.Severity, l.after = min(l.Severity, Warning), who+consequence
	case len(others) > 0:
		l.Severity, l.after = Info, " as other clients, such as "+others[0]+consequence
	default:
		return
	}
	c.lack(a, l)
}

// forms reports the SDKs whose topics for replies are not allowed.
func (c *checker) forms(a *actor) {
	var missing, topics []string
	id := a.bare.clients[0].ClientID
	for i, f := range responseForms(id) {
		if !a.bare.may[stepResponse+i] {
			missing = append(missing, f[0])
			topics = append(topics, f[1])
		}
	}
	if len(missing) > 0 {
		c.lack(a, lack{Finding: Finding{ID: idForms, Line: a.line, Severity: Info, Hint: "list the topic of each client in full, such as " + strings.Join(topics, ", ") + " for client id " + id},
			lackText: lackText{"no rule allows Subscribe on the response topics of " + strings.Join(missing, " and ") + " for ", ""}})
	}
}
