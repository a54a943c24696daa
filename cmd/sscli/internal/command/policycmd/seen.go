package policycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/wire"
)

// seen collects what clients did.
type seen struct {
	deeds []policy.Deed
	known map[string]bool
	notes []string // what the files do not say
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
			return nil, fault.Usagef("%s: %w", format.Path(name), err)
		}
		n := 0
		var traced policy.Principal
		for line := range strings.Lines(string(decoded)) {
			n++
			trimmed := strings.TrimSpace(line)
			switch {
			case trimmed == "" || strings.HasPrefix(trimmed, "#"):
			case strings.HasPrefix(trimmed, "{"):
				logged = true
				err = s.event([]byte(trimmed))
			case strings.Contains(trimmed, " bytes) ") && (strings.Contains(trimmed, " -> ") || strings.Contains(trimmed, " <- ")):
				topics = true
				s.packet(trimmed, &traced)
			case strings.HasPrefix(trimmed, "sscli: "):
			default:
				var deeds []policy.Deed
				deeds, err = q.line(trimmed)
				for _, d := range deeds {
					topics = topics || d.Method == policy.Publish || d.Method == policy.Subscribe
					s.add(d, "")
				}
			}
			if err != nil {
				return nil, fault.Usagef("%s:%d: %w", format.Path(name), n, err)
			}
		}
	}
	if logged && !topics {
		s.lacking("a log does not name the topics that applications publish and subscribe to: add a trace (--trace-file), or a list of lines such as publish TOPIC")
	}
	return s, nil
}

// add adds an action and, if it is a request to the store, what requests need. reply is the topic for
// replies; "" = not known.
func (s *seen) add(d policy.Deed, reply string) {
	s.note(d)
	if d.Method == policy.Read || d.Method == policy.Write {
		s.request(d, reply)
	}
}

// request adds what each request of a client needs.
func (s *seen) request(d policy.Deed, reply string) {
	if reply == "" {
		reply = wire.ResponseTopic(d.ClientID)
		d.Written = d.ClientID == ""
		if d.Written {
			reply = wire.ResponseTopic("CLIENT")
			reply = strings.Replace(reply, "CLIENT", "{principal.clientId}", 1)
		}
	}
	for _, a := range []policy.Action{{Method: policy.Connect}, {Method: policy.Publish, On: wire.RequestTopic}, {Method: policy.Subscribe, On: reply}} {
		d.Action = a
		s.note(d)
	}
}

func (s *seen) note(d policy.Deed) {
	id := fmt.Sprintf("%q %q %q %d %q", d.ClientID, d.Username, attributePairs(d.Attributes), d.Method, d.On)
	if !s.known[id] {
		s.known[id] = true
		s.deeds = append(s.deeds, d)
	}
}

// rights returns the rights that a request needs for its key with the index i. verb and options are as in a log
// of serve.
func rights(verb, options string, i int) policy.Method {
	switch verb {
	case "get", "keynotify", "mget", "exists", "touch", "ttl", "pttl", "expiretime", "pexpiretime", "strlen", "type", "getrange", "substr", "getbit",
		"object|encoding", "object|refcount", "object|idletime", "object|freq", "memory|usage", "ss.get", "ss.version", "watch":
		return policy.Read
	case "copy":
		if i == 0 {
			return policy.Read
		}
	case "rename", "renamenx":
		if i == 0 {
			return policy.Read | policy.Write
		}
	case "getset", "getdel", "getex", "incr", "incrby", "incrbyfloat", "decr", "decrby", "setbit":
		return policy.Read | policy.Write
	case "set":
		if slices.Contains(strings.Fields(strings.ToLower(options)), "get") {
			return policy.Read | policy.Write
		}
	}
	return policy.Write
}

// event reads a line of serve -v --log-format json.
func (s *seen) event(line []byte) error {
	var e struct {
		Op, Port, Client, User, Verb, Options, Topic, Key string
		KeyB64                                            []byte `json:"key_b64"`
		Keys                                              []json.RawMessage
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("expected a line of serve -v --log-format json: %w", err)
	}
	d := policy.Deed{Principal: policy.Principal{ClientID: e.Client, Username: e.User}}
	switch {
	case e.Op == "connect" && e.Port == "":
		d.Method = policy.Connect
		s.note(d)
		return nil
	case e.Op != "request":
		return nil
	case e.Verb == "scan":
		s.lacking("SCAN lists the keys that the client may read: the log does not name them")
	}
	if e.Port == "" {
		s.request(d, e.Topic)
	}
	keys := []string{e.Key + string(e.KeyB64)}
	for i, raw := range e.Keys {
		var key string
		var encoded struct{ B64 []byte }
		if json.Unmarshal(raw, &key) != nil { // not UTF-8
			if err := json.Unmarshal(raw, &encoded); err != nil {
				return fmt.Errorf("keys: %w", err)
			}
			key = string(encoded.B64)
		}
		keys = append(keys[:i], key)
	}
	for i, key := range keys {
		for _, m := range rights(e.Verb, e.Options, i).Each() {
			if d.Method, d.On = m, key; key != "" {
				s.note(d)
			}
		}
	}
	if e.Verb == "keynotify" {
		d.Action = policy.Action{Method: policy.Subscribe, On: wire.NotifyFilter(e.Client)}
		s.note(d)
	}
	return nil
}

// packet reads a line of --trace-file.
func (s *seen) packet(line string, who *policy.Principal) {
	_, sent, out := strings.Cut(line, " -> ")
	if !out {
		return
	}
	kind, _, _ := strings.Cut(sent, " ")
	_, detail, _ := strings.Cut(sent, " bytes) ")
	detail = strings.TrimPrefix(detail, "DUP ")
	d := policy.Deed{}
	switch kind {
	case "CONNECT":
		*who = policy.Principal{ClientID: after(detail, "client id "), Username: after(detail, "user name ")}
		d.Method = policy.Connect
	case "SUBSCRIBE":
		for rest := detail; strings.HasPrefix(rest, `"`); {
			filter, more := quoted(rest)
			s.note(policy.Deed{Principal: *who, Action: policy.Action{Method: policy.Subscribe, On: filter}})
			_, rest, _ = strings.Cut(more, ", ")
		}
		return
	case "PUBLISH":
		words, isRequest := strings.CutPrefix(detail, "request ")
		if !isRequest {
			payload, isMessage := strings.CutPrefix(detail, "message ")
			_, rest := quoted(payload)
			if topic := after(rest, " on "); isMessage && topic != "" {
				s.note(policy.Deed{Principal: *who, Action: policy.Action{Method: policy.Publish, On: topic}})
			}
			return
		}
		verb, rest, _ := strings.Cut(words, " ")
		key, more := quoted(rest)
		d.Principal = *who
		s.request(d, after(rest, "response topic "))
		switch verb {
		case wire.VerbGet, wire.VerbKeyNotify:
			d.Method = policy.Read
		case wire.VerbSet, wire.VerbDel, wire.VerbVDel:
			d.Method = policy.Write
		case wire.VerbScan:
			s.lacking("SCAN lists the keys that the client may read: the trace does not name them")
			return
		default:
			s.lacking(fmt.Sprintf("the trace does not say whether %.20q reads or writes", verb))
			return
		}
		if strings.HasSuffix(key, "…") || strings.HasPrefix(more, "…") {
			s.lacking("the trace shows only the beginning of the key " + format.BriefWord(key))
			return
		}
		d.On = key
	default:
		return
	}
	d.Principal = *who
	s.note(d)
}

// after returns the quoted word after a text.
func after(line, before string) string {
	_, rest, found := strings.Cut(line, before)
	if !found {
		return ""
	}
	word, _ := quoted(rest)
	return word
}

// quoted returns the word at the beginning of a text, without its quotes, and the text after it.
func quoted(text string) (word, rest string) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, " ,")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:]
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			word, err := format.Unquote(text[:i+1])
			if err != nil {
				word = text[1:i]
			}
			return word, text[i+1:]
		}
	}
	return text, ""
}
