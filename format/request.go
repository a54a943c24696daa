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

func (r Request) fields() object {
	o := object{
		{"op", "request"}, {"time", rfc3339(r.Time)}, {"port", nonEmpty(r.Port)},
		{"client", r.Client}, {"user", nonEmpty(r.User)}, {"verb", nonEmpty(r.Verb)},
	}
	if len(r.Keys) == 1 {
		o = append(o, field{"key", r.Keys[0]})
	} else if len(r.Keys) > 1 {
		o = append(o, field{"keys", texts(r.Keys)})
	}
	o = append(o,
		field{"options", nonEmpty(r.Options)}, field{"fence", nonEmpty(r.Fence)},
		field{"outcome", r.Outcome}, field{"result", nonEmpty(valid(r.Result))}, field{"cause", nonEmpty(valid(r.Cause))},
		field{"version", versionField(r.Version)}, field{"notified", r.Notified},
	)
	d := r.Detail
	if d == nil {
		return o
	}
	o = append(o,
		field{"value", when(d.HasValue, string(d.Value))}, field{"clock", nonEmpty(d.Clock)},
		field{"took_ms", rtt(d.Took)}, field{"topic", nonEmpty(d.Topic)},
		field{"request_bytes", when(d.Sent > 0, d.Sent)}, field{"reply_bytes", d.Received},
	)
	if len(d.Watchers) > 0 {
		o = append(o, field{"notified_clients", texts(d.Watchers)})
	}
	return o
}

func texts(all []string) list {
	l := make(list, len(all))
	for i, s := range all {
		l[i] = s
	}
	return l
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

func (r Request) raw(dst []byte) []byte { return r.human(dst, plainStyle()) }

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
	Time     time.Time
	Key      string
	Version  Version // of the value that expired
	Notified int
}

func (e Expiry) fields() object {
	return object{
		{"op", "expire"}, {"time", rfc3339(e.Time)}, {"key", e.Key}, {"version", versionField(e.Version)}, {"notified", e.Notified},
	}
}

func (e Expiry) human(dst []byte, s *style) []byte {
	dst = append(append(dst, s.faint.Sprint(logTime(e.Time))...), "  "...)
	dst = append(append(dst, "expired "...), s.key.Sprint(BriefWord(e.Key))...)
	dst = append(append(dst, "  "...), s.faint.Sprint(string(appendVersion(nil, e.Version, "version unknown")))...)
	if e.Notified > 0 {
		dst = append(append(dst, "  "...), strconv.Itoa(e.Notified)+" notified"...)
	}
	return append(dst, '\n')
}

func (e Expiry) raw(dst []byte) []byte { return e.human(dst, plainStyle()) }

// Connection is a line of the log of a server: a client has come, was refused, or has gone.
type Connection struct {
	Op           string // connect, refuse or disconnect
	Time         time.Time
	Client, User string
	Remote       string // address
	Protocol     string // such as MQTT 5; empty: not known
	Reason       string // for refuse and disconnect
}

func (c Connection) fields() object {
	return object{
		{"op", c.Op}, {"time", rfc3339(c.Time)}, {"client", c.Client}, {"user", nonEmpty(c.User)},
		{"remote", nonEmpty(c.Remote)}, {"protocol", nonEmpty(c.Protocol)}, {"reason", nonEmpty(c.Reason)},
	}
}

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

func (c Connection) raw(dst []byte) []byte { return c.human(dst, plainStyle()) }

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

// plainStyle is for outputs without color.
func plainStyle() *style {
	s := newStyle(Options{})
	return &s
}
