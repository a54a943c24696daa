package policycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/wire"
)

// seen collects what clients did.
type seen struct {
	deeds []policy.Deed
	known map[string]bool
	notes []string // what the files do not say

	without  []policy.Deed // of the requests below, which give no rights
	refused  int           // requests that were refused for lack of rights or of a login, or that were ignored
	nameless int           // requests of Redis clients without a login
}

// leftOut says which requests give no rights.
func (s *seen) leftOut() (notes []string) {
	if s.refused > 0 {
		notes = append(notes, "left out: "+format.Count(s.refused, "refused or ignored request")+"; to allow more than was done, add flags such as --read KEY")
	}
	if s.nameless > 0 {
		notes = append(notes, "left out: "+format.Count(s.nameless, "request")+" of Redis clients without a login, which no rule can name")
	}
	return notes
}

// lacking notes something that the files do not say.
func (s *seen) lacking(note string) {
	if !slices.Contains(s.notes, note) {
		s.notes = append(s.notes, note)
	}
}

// readLogs reads traces, logs and lists of actions. q is the client of lists.
func readLogs(ctx context.Context, a *app.App, names []string, q question) (*seen, error) {
	s := &seen{known: make(map[string]bool)}
	logged, topics := false, len(q.publish)+len(q.subscribe) > 0
	for _, name := range names {
		text, err := a.Read(ctx, name, "what clients did")
		if err != nil {
			return nil, &fault.UsageError{Err: err}
		}
		decoded, err := files.DecodeText([]byte(text))
		if err != nil {
			return nil, fault.Usagef("%s: %w", format.Location(name, 0, 0), err)
		}
		n := 0
		t := trace{seen: s, acks: make(map[ack][]*attempt), replies: make(map[string][]*attempt)}
		for line := range strings.Lines(string(decoded)) {
			n++
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			trimmed := strings.TrimSpace(line)
			switch {
			case trimmed == "" || strings.HasPrefix(trimmed, "#"):
			case strings.HasPrefix(trimmed, "{"):
				var p packet
				switch err = json.Unmarshal([]byte(trimmed), &p); {
				case err != nil:
					err = fmt.Errorf("expected a line of --trace-format json or of serve -v --log-format json: %w", err)
				case p.Op != "packet":
					logged = true
					err = s.event([]byte(trimmed))
				case p.Sent:
					topics = true
					err = t.sent(&p)
				default:
					t.received(&p)
				}
			case strings.HasPrefix(trimmed, "sscli: "):
			case strings.Contains(trimmed, " bytes) "):
				err = errors.New("expected a trace in JSON: record it with --trace-format json")
			default:
				var deeds []policy.Deed
				deeds, err = q.line(trimmed)
				for _, d := range deeds {
					topics = topics || d.Method == policy.Publish || d.Method == policy.Subscribe
					s.add(d)
				}
			}
			if err != nil {
				return nil, fault.Usagef("%s: %w", format.Location(name, n, 0), err)
			}
		}
		t.end()
	}
	if logged && !topics {
		s.lacking("a log does not name the topics that applications publish and subscribe to: add a trace (--trace-file FILE --trace-format json), or a list of lines such as publish TOPIC")
	}
	return s, nil
}

// add adds an action and, if it is a request to the store, what requests need.
func (s *seen) add(d policy.Deed) {
	s.note(d)
	needs := request(d, "")
	if d.Method < policy.Read {
		needs = needs[:1] // Connect
	}
	s.note(needs...)
}

// request returns what each request of a client needs. reply is the topic for replies; "" = not known.
func request(d policy.Deed, reply string) (all []policy.Deed) {
	if reply == "" {
		reply = wire.ResponseTopic(d.ClientID)
		d.Written = d.ClientID == ""
		if d.Written {
			reply = wire.PlainResponseTopic("{principal.clientId}")
		}
	}
	for _, a := range []policy.Action{{Method: policy.Connect}, {Method: policy.Publish, On: wire.RequestTopic}, {Method: policy.Subscribe, On: reply}} {
		d.Action = a
		all = append(all, d)
	}
	return all
}

func (s *seen) note(deeds ...policy.Deed) {
	for _, d := range deeds {
		id := fmt.Sprintf("%q %q %q %d %q", d.ClientID, d.Username, attributePairs(d.Attributes), d.Method, d.On)
		if !s.known[id] {
			s.known[id] = true
			s.deeds = append(s.deeds, d)
		}
	}
}

// rights returns the rights for what a request does with a key.
func rights(access observe.Access) []policy.Method {
	return map[observe.Access][]policy.Method{
		observe.Reads: {policy.Read}, observe.Writes: {policy.Write}, observe.ReadWrite: {policy.Read, policy.Write},
	}[access]
}

// event reads a line of serve -v --log-format json.
func (s *seen) event(line []byte) error {
	var e struct {
		Op, Port, Client, User, Verb, Access, Topic, Key, Outcome, Cause string
		KeyB64                                                           []byte `json:"key_b64"`
		Keys                                                             []json.RawMessage
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("expected a line of serve -v --log-format json: %w", err)
	}
	d := policy.Deed{Principal: policy.Principal{ClientID: e.Client, Username: e.User}}
	if e.Op == "connect" && e.Port == "" {
		d.Method = policy.Connect
		s.note(d)
	}
	if e.Op != "request" {
		return nil
	}
	var deeds []policy.Deed
	if e.Port == "" {
		deeds = request(d, e.Topic)
	}
	keys := []string{e.Key + string(e.KeyB64)}
	for i, raw := range e.Keys {
		key, err := loggedText(raw)
		if err != nil {
			return fmt.Errorf("keys: %w", err)
		}
		keys = append(keys[:i], key)
	}
	access := strings.Fields(e.Access) // one word for all keys, or one for each
	for i, key := range keys {
		switch {
		case key == "":
			continue
		case len(access) == 0:
			return errors.New("the log does not say what the request does with its key: expected a log of this version of sscli")
		}
		for _, m := range rights(observe.Access(access[min(i, len(access)-1)])) {
			d.Method, d.On = m, key
			deeds = append(deeds, d)
		}
	}
	if e.Verb == "keynotify" {
		d.Action = policy.Action{Method: policy.Subscribe, On: wire.NotifyFilter(e.Client)}
		deeds = append(deeds, d)
	}
	switch {
	case len(deeds) == 0:
	case e.Outcome == "ignored", e.Outcome == "refused" && unauthorized(e.Cause):
		s.refused++
		s.without = append(s.without, deeds...)
	case e.Port != "" && e.User == "":
		s.nameless++
		s.without = append(s.without, deeds...)
	default:
		if s.note(deeds...); e.Verb == "scan" {
			s.lacking("SCAN lists the keys that the client may read: the log does not name them")
		}
	}
	return nil
}

// loggedText decodes a string of a log or, if it is not UTF-8, an object with base64.
func loggedText(raw json.RawMessage) (text string, err error) {
	var encoded struct{ B64 []byte }
	if json.Unmarshal(raw, &text) != nil {
		err = json.Unmarshal(raw, &encoded)
		text = string(encoded.B64)
	}
	return text, err
}

// unauthorized reports whether an error, without a leading ERR, says that the client lacks a right or a login.
func unauthorized(text string) bool {
	code, _, _ := strings.Cut(text, " ")
	return text == wire.TextNotAuthorized || code == "NOAUTH" || code == "NOPERM"
}
