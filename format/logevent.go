package format

import (
	"strconv"
	"strings"
	"time"
)

// LogEvent is a line of the log of a server, for standard error: a request and its outcome, a key
// that expired, or a client that connected, was refused or disconnected.
type LogEvent struct {
	Op           string // request, expire, connect, refuse or disconnect
	Time         time.Time
	Port         string // redis; empty: MQTT
	Client, User string

	// Of a request; an expiry has Keys, Version and Notified too.
	Verb     string // in lower case; empty: the request could not be read
	Keys     []string
	Options  string // in the words of the request
	Fence    string // the fencing token, as received; empty: none
	Outcome  string // ok, no, refused or ignored
	Result   string // the reply in a few words
	Cause    string // why the outcome is this one; may be empty
	Version  Version
	Notified int            // the number of clients that are notified of the change
	Detail   *RequestDetail // nil: not asked for

	// Of a client that connected, was refused or disconnected.
	Remote   string // address
	Protocol string // such as MQTT 5; empty: not known
	Reason   string
}

// RequestDetail has the details of a request.
type RequestDetail struct {
	Value    []byte        // the value to set or to compare; nil: none
	Clock    string        // `__ts` of the request; empty: none
	Took     time.Duration // 0: not known
	Topic    string        // of the reply; empty: none, or not known
	Sent     int           // bytes of the request
	Received int           // bytes of the reply
	Watchers []string      // the clients that are notified
}

func (LogEvent) diagnostic() {}

func (e LogEvent) fields(o *objectWriter) {
	o.add("op", e.Op)
	o.add("time", e.Time)
	o.add("port", nonEmpty(e.Port))
	o.add("client", when(e.Op != "expire", e.Client))
	o.add("user", nonEmpty(e.User))
	o.add("verb", nonEmpty(e.Verb))
	if len(e.Keys) == 1 {
		o.add("key", e.Keys[0])
	} else {
		o.add("keys", when(len(e.Keys) > 1, e.Keys))
	}
	o.add("options", nonEmpty(e.Options))
	o.add("fence", nonEmpty(e.Fence))
	o.add("outcome", nonEmpty(e.Outcome))
	o.add("result", nonEmpty(valid(e.Result)))
	o.add("cause", nonEmpty(valid(e.Cause)))
	o.add("version", e.Version)
	o.add("notified", when(e.Op == "request" || e.Op == "expire", e.Notified))
	if d := e.Detail; d != nil {
		o.add("value", when(d.Value != nil, d.Value))
		o.add("clock", nonEmpty(d.Clock))
		o.add("took_ms", rtt(d.Took))
		o.add("topic", nonEmpty(d.Topic))
		o.add("request_bytes", when(d.Sent > 0, d.Sent))
		o.add("reply_bytes", d.Received)
		o.add("notified_clients", when(len(d.Watchers) > 0, d.Watchers))
	}
	o.add("remote", nonEmpty(e.Remote))
	o.add("protocol", nonEmpty(e.Protocol))
	o.add("reason", nonEmpty(e.Reason))
}

func (e LogEvent) human(dst []byte, s *style) []byte {
	line := []string{s.faint.Sprint(e.Time.UTC().Format("15:04:05.000"))}
	if e.Op != "expire" {
		who := Word(e.Client)
		if e.User != "" {
			who += " (" + Escape(e.User) + ")"
		}
		line = append(line, who)
	}
	text := func(text string) string { return string(appendText(nil, text)) }
	switch e.Op {
	case "request":
		line = append(line, e.request(s)+" → "+e.outcome(s))
	case "expire":
		line = append(line, "expired "+s.key.Sprint(BriefWord(e.Keys[0])))
	case "connect":
		line = append(line, text("connected from "+e.Remote+", "+e.Protocol))
	case "refuse":
		line = append(line, s.fail.Sprint("not let in")+text(" from "+e.Remote+": "+e.Reason))
	default:
		line = append(line, text("gone: "+e.Reason))
	}
	if !none(e.Version) || e.Op == "expire" {
		line = append(line, s.faint.Sprint(string(appendVersion(nil, e.Version, "version unknown"))))
	}
	if e.Notified > 0 {
		line = append(line, strconv.Itoa(e.Notified)+" notified")
	}
	if e.Detail != nil {
		line = append(line, s.faint.Sprint(e.Detail.words()))
	}
	return append(append(dst, strings.Join(line, "  ")...), '\n')
}

// request returns the request as a user types it. The value is omitted unless there are
// details.
func (e LogEvent) request(s *style) string {
	if e.Verb == "" {
		return "(not a request)"
	}
	words := []string{string(appendText(nil, e.Verb))}
	for _, k := range e.Keys {
		words = append(words, s.key.Sprint(BriefWord(k)))
	}
	if d := e.Detail; d != nil && d.Value != nil {
		words = append(words, Brief(d.Value))
	}
	if e.Options != "" {
		words = append(words, string(appendText(nil, e.Options)))
	}
	if e.Fence != "" {
		words = append(words, "fence "+string(appendText(nil, e.Fence)))
	}
	return strings.Join(words, " ")
}

// outcome returns the result of a request, or why it has none.
func (e LogEvent) outcome(s *style) string {
	text, cause := e.Outcome, ": "+e.Cause
	if e.Outcome == "ok" {
		text, cause = e.Result, ", "+e.Cause
	}
	if e.Cause != "" {
		text += cause
	}
	text = string(appendText(nil, text))
	switch e.Outcome {
	case "ok":
		return text
	case "refused":
		return s.fail.Sprint(text)
	}
	return s.warning.Sprint(text)
}

func (d *RequestDetail) words() string {
	var parts []string
	if d.Took != 0 {
		parts = append(parts, d.Took.Round(time.Microsecond).String())
	}
	if d.Sent > 0 {
		parts = append(parts, strconv.Itoa(d.Sent)+" bytes in")
	}
	parts = append(parts, strconv.Itoa(d.Received)+" bytes out")
	if d.Topic != "" {
		parts = append(parts, "to "+string(appendText(nil, d.Topic)))
	}
	if len(d.Watchers) > 0 {
		names := "notified"
		for _, w := range d.Watchers {
			names += " " + Word(w)
		}
		parts = append(parts, names)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
