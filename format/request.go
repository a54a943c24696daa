package format

import (
	"strconv"
	"strings"
	"time"
)

// Request is a line of the log of a server: a request, and what became of it. It is for
// standard error.
type Request struct {
	Time         time.Time
	Port         string // redis; empty: MQTT
	Client, User string

	Verb    string // in lower case; empty: the request could not be read
	Keys    []string
	Options string // in the words of the request
	Fence   string // the fencing token, as it came; empty: none

	Outcome  string // ok, no, refused or ignored
	Result   string // what the reply is, in a few words
	Cause    string // why the outcome is this one; may be empty
	Version  Version
	Notified int // clients that are notified of what changed

	Detail *RequestDetail // nil: not asked for
}

// RequestDetail is what more there is to say of a request.
type RequestDetail struct {
	Value    []byte // that is set or compared
	HasValue bool
	Clock    string        // `__ts` of the request; empty: none came
	Took     time.Duration // 0: not known
	Topic    string        // of the reply; empty: none, or not known
	Sent     int           // bytes of the request
	Received int           // bytes of the reply
	Watchers []string      // the clients that are notified
}

func (Request) diagnostic() {}

func (r Request) fields(o *objectWriter) {
	o.add("op", "request")
	o.add("time", r.Time)
	o.add("port", nonEmpty(r.Port))
	o.add("client", r.Client)
	o.add("user", nonEmpty(r.User))
	o.add("verb", nonEmpty(r.Verb))
	if len(r.Keys) == 1 {
		o.add("key", r.Keys[0])
	} else {
		o.add("keys", when(len(r.Keys) > 1, r.Keys))
	}
	o.add("options", nonEmpty(r.Options))
	o.add("fence", nonEmpty(r.Fence))
	o.add("outcome", r.Outcome)
	o.add("result", nonEmpty(valid(r.Result)))
	o.add("cause", nonEmpty(valid(r.Cause)))
	o.add("version", r.Version)
	o.add("notified", r.Notified)
	d := r.Detail
	if d == nil {
		return
	}
	o.add("value", when(d.HasValue, d.Value))
	o.add("clock", nonEmpty(d.Clock))
	o.add("took_ms", rtt(d.Took))
	o.add("topic", nonEmpty(d.Topic))
	o.add("request_bytes", when(d.Sent > 0, d.Sent))
	o.add("reply_bytes", d.Received)
	o.add("notified_clients", when(len(d.Watchers) > 0, d.Watchers))
}

func (r Request) human(dst []byte, s *style) []byte {
	dst = appendWho(dst, s, r.Time, r.Client, r.User)
	dst = append(dst, r.asked(s)...)
	dst = append(dst, " → "...)
	switch {
	case r.Outcome == "ok":
		dst = appendText(dst, r.Result)
		if r.Cause != "" {
			dst = appendText(append(dst, ", "...), r.Cause)
		}
	default:
		text := r.Outcome
		if r.Cause != "" {
			text += ": " + r.Cause
		}
		color := s.warning
		if r.Outcome == "refused" {
			color = s.fail
		}
		dst = append(dst, color.Sprint(string(appendText(nil, text)))...)
	}
	if !none(r.Version) {
		dst = append(append(dst, "  "...), s.faint.Sprint(string(appendVersion(nil, r.Version, "")))...)
	}
	if r.Notified > 0 {
		dst = append(append(dst, "  "...), strconv.Itoa(r.Notified)+" notified"...)
	}
	if d := r.Detail; d != nil {
		dst = append(append(dst, "  "...), s.faint.Sprint(d.words())...)
	}
	return append(dst, '\n')
}

// asked is the request as one types it, without the value unless that is asked for.
func (r Request) asked(s *style) string {
	if r.Verb == "" {
		return "(not a request)"
	}
	words := []string{string(appendText(nil, r.Verb))}
	for _, k := range r.Keys {
		words = append(words, s.key.Sprint(BriefWord(k)))
	}
	if d := r.Detail; d != nil && d.HasValue {
		words = append(words, Brief(d.Value))
	}
	if r.Options != "" {
		words = append(words, string(appendText(nil, r.Options)))
	}
	if r.Fence != "" {
		words = append(words, "fence "+string(appendText(nil, r.Fence)))
	}
	return strings.Join(words, " ")
}

func (d *RequestDetail) words() string {
	var parts []string
	part := func(ok bool, text string) {
		if ok {
			parts = append(parts, text)
		}
	}
	part(d.Took != 0, d.Took.Round(time.Microsecond).String())
	part(d.Sent > 0, strconv.Itoa(d.Sent)+" bytes in")
	part(true, strconv.Itoa(d.Received)+" bytes out")
	part(d.Topic != "", "to "+string(appendText(nil, d.Topic)))
	if len(d.Watchers) > 0 {
		names := make([]string, len(d.Watchers))
		for i, w := range d.Watchers {
			names[i] = Word(w)
		}
		parts = append(parts, "notified "+strings.Join(names, " "))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// Expiry is a line of the log of a server: a key has expired.
type Expiry struct {
	Time     time.Time `json:"time"`
	Key      string    `json:"key"`
	Version  Version   `json:"version"` // of the value that expired
	Notified int       `json:"notified"`
}

func (Expiry) diagnostic() {}

func (e Expiry) fields(o *objectWriter) { o.result("expire", e) }

func (e Expiry) human(dst []byte, s *style) []byte {
	dst = append(append(dst, s.faint.Sprint(logTime(e.Time))...), "  "...)
	dst = append(append(dst, "expired "...), s.key.Sprint(BriefWord(e.Key))...)
	dst = append(append(dst, "  "...), s.faint.Sprint(string(appendVersion(nil, e.Version, "version unknown")))...)
	if e.Notified > 0 {
		dst = append(append(dst, "  "...), strconv.Itoa(e.Notified)+" notified"...)
	}
	return append(dst, '\n')
}

// Connection is a line of the log of a server: a client has come, was refused, or has gone.
type Connection struct {
	Op       string    // connect, refuse or disconnect
	Time     time.Time `json:"time"`
	Client   string    `json:"client"`
	User     string    `json:"user,omitzero"`
	Remote   string    `json:"remote,omitzero"`   // address
	Protocol string    `json:"protocol,omitzero"` // such as MQTT 5; empty: not known
	Reason   string    `json:"reason,omitzero"`   // for refuse and disconnect
}

func (Connection) diagnostic() {}

func (c Connection) fields(o *objectWriter) { o.result(c.Op, c) }

func (c Connection) human(dst []byte, s *style) []byte {
	dst = appendWho(dst, s, c.Time, c.Client, c.User)
	switch c.Op {
	case "connect":
		dst = appendText(append(dst, "connected from "...), c.Remote+", "+c.Protocol)
	case "refuse":
		dst = append(dst, s.fail.Sprint("not let in")...)
		dst = append(appendText(append(dst, " from "...), c.Remote), ": "...)
		dst = appendText(dst, c.Reason)
	default:
		dst = appendText(append(dst, "gone: "...), c.Reason)
	}
	return append(dst, '\n')
}

func logTime(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// appendWho begins a line of the log.
func appendWho(dst []byte, s *style, at time.Time, client, user string) []byte {
	dst = append(append(dst, s.faint.Sprint(logTime(at))...), "  "...)
	dst = append(dst, Word(client)...)
	if user != "" {
		dst = append(append(append(dst, " ("...), Escape(user)...), ')')
	}
	return append(dst, "  "...)
}
