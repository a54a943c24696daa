package format

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/observe"
)

// LogEvent is a line of a server's log, for standard error.
type LogEvent struct {
	observe.Event
	Parsed   Version // Event.Version, parsed; zero = none
	Detailed bool    // show every detail of a request
}

func (LogEvent) diagnostic() {}

func (e LogEvent) fields(o *objectWriter) {
	o.add("op", string(e.Op))
	o.add("time", e.Time)
	o.add("port", nonEmpty(e.Port))
	o.add("client", when(e.Op != observe.Expire, e.Client))
	o.add("user", nonEmpty(e.User))
	o.add("verb", nonEmpty(e.Verb))
	if len(e.Keys) == 1 {
		o.add("key", e.Keys[0])
	} else {
		o.add("keys", when(len(e.Keys) > 1, e.Keys))
	}
	o.add("access", nonEmpty(e.access()))
	o.add("options", nonEmpty(e.options()))
	o.add("fence", nonEmpty(e.Fence))
	o.add("outcome", when(e.Op == observe.Request, string(e.Outcome)))
	o.add("result", nonEmpty(valid(e.Result)))
	o.add("cause", nonEmpty(valid(e.Cause)))
	o.add("rule", nonEmpty(valid(e.Rule)))
	o.add("version", e.Parsed)
	o.add("notified", when(e.Op == observe.Request || e.Op == observe.Expire, len(e.Notified)))
	if e.hasDetail() {
		o.add("value", when(e.Value != nil, e.Value))
		o.add("clock", nonEmpty(e.Clock))
		o.add("took_ms", nonZero(e.Took))
		o.add("topic", nonEmpty(e.Topic))
		o.add("request_bytes", when(e.Sent > 0, e.Sent))
		o.add("reply_bytes", e.Received)
		o.add("notified_clients", when(len(e.Notified) > 0, e.Notified))
	}
	o.add("remote", nonEmpty(e.Remote))
	o.add("protocol", nonEmpty(e.Protocol))
	o.add("reason", nonEmpty(e.Reason))
}

func (e LogEvent) human(w *writer) {
	line := []string{w.faint.Sprint(clock(e.Time))}
	if e.Op != observe.Expire {
		who := Word(e.Client)
		if e.User != "" {
			who += " (" + Escape(e.User) + ")"
		}
		line = append(line, who)
	}
	switch e.Op {
	case observe.Request:
		line = append(line, e.request(&w.style)+" → "+e.outcome(&w.style))
	case observe.Expire:
		line = append(line, "expired "+w.key.Sprint(BriefWord(e.Keys[0])))
	case observe.Connect:
		line = append(line, printable("connected from "+e.Remote+", "+e.Protocol))
	case observe.Refuse:
		line = append(line, w.fail.Sprint("not let in")+printable(" from "+e.Remote+": "+e.Reason))
	default:
		line = append(line, printable("gone: "+e.Reason))
	}
	if !e.Parsed.IsZero() || e.Op == observe.Expire {
		line = append(line, w.faint.Sprint(versionText(e.Parsed, "version unknown")))
	}
	if e.Rule != "" {
		line = append(line, w.faint.Sprint("("+printable(e.Rule)+")"))
	}
	if n := len(e.Notified); n > 0 {
		line = append(line, strconv.Itoa(n)+" notified")
	}
	if e.hasDetail() {
		line = append(line, w.faint.Sprint(e.detail()))
	}
	w.print(strings.Join(line, "  "), "\n")
}

// request returns the request as a user would type it. The value is included only if e.Detailed
// is set.
func (e LogEvent) request(s *style) string {
	if e.Verb == "" {
		return "(not a request)"
	}
	words := []string{printable(e.Verb)}
	for _, k := range e.Keys {
		words = append(words, s.key.Sprint(BriefWord(k)))
	}
	if e.Detailed && e.Value != nil {
		words = append(words, Brief(e.Value))
	}
	if options := e.options(); options != "" {
		words = append(words, options)
	}
	if e.Fence != "" {
		words = append(words, "fence "+printable(e.Fence))
	}
	return strings.Join(words, " ")
}

// outcome returns the result of a request, or the reason why there is no result.
func (e LogEvent) outcome(s *style) string {
	text, cause := string(e.Outcome), ": "+e.Cause
	if e.Outcome == observe.OK {
		text, cause = e.Result, ", "+e.Cause
	}
	if e.Cause != "" {
		text += cause
	}
	switch text = printable(text); e.Outcome {
	case observe.OK:
		return text
	case observe.Refused:
		return s.fail.Sprint(text)
	}
	return s.warning.Sprint(text)
}

// access returns what the request does with each of its keys, in one word if it is the same.
func (e LogEvent) access() string {
	if len(e.Access) == 0 {
		return ""
	}
	text := string(e.Access[0])
	if slices.ContainsFunc(e.Access, func(a observe.Access) bool { return a != e.Access[0] }) {
		for _, a := range e.Access[1:] {
			text += " " + string(a)
		}
	}
	return text
}

// options returns the request's options as a user would type them.
func (e LogEvent) options() string {
	typed := make([]string, len(e.Options))
	for i, w := range e.Options {
		typed[i] = BriefWord(w)
	}
	return strings.Join(typed, " ")
}

func (e LogEvent) hasDetail() bool { return e.Detailed && e.Op == observe.Request }

// detail returns the details of a request except its value, which the method request returns.
func (e LogEvent) detail() string {
	var parts []string
	if e.Took != 0 {
		parts = append(parts, e.Took.Round(time.Microsecond).String())
	}
	if e.Sent > 0 {
		parts = append(parts, strconv.Itoa(e.Sent)+" bytes in")
	}
	parts = append(parts, strconv.Itoa(e.Received)+" bytes out")
	if e.Topic != "" {
		parts = append(parts, "to "+printable(e.Topic))
	}
	if len(e.Notified) > 0 {
		names := "notified"
		for _, w := range e.Notified {
			names += " " + Word(w)
		}
		parts = append(parts, names)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
