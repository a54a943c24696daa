package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/config"
	"github.com/sscli/sscli/format"
)

// trace lets every packet be printed, if that was asked for. What it returns
// ends the trace.
func (a *app) trace(o *client.Options) (end func() error, err error) {
	o.Trace, end, err = a.tracer(a.settings.Trace, a.settings.TraceFile)
	return end, err
}

// tracesSteps reports whether a request is sent only once the session is there: a trace
// is easier to follow when what causes something comes first. --no-pipelining=false
// traces a request that does not wait.
func (a *app) tracesSteps(o client.Options) bool {
	return o.Trace != nil && a.settings.Sources["no-pipelining"] == ""
}

// tracer returns what prints every packet to standard error, to a file unless its
// name is empty, or to both; print is nil if to none. end ends it.
func (a *app) tracer(stderr bool, name string) (print func(mqtt.Event), end func() error, err error) {
	var to []io.Writer
	var file *os.File
	if stderr {
		to = append(to, a.stderr)
	}
	if name != "" {
		file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, &config.Error{Source: a.settings.Sources["trace-file"], Why: err.Error()}
		}
		to = append(to, file)
	}
	if len(to) == 0 {
		return nil, func() error { return nil }, nil
	}
	t := &tracer{w: io.MultiWriter(to...), start: time.Now()}
	return t.print, func() error {
		if file == nil {
			return t.err
		}
		return errors.Join(t.err, file.Close())
	}, nil
}

// tracer prints one line for each packet.
type tracer struct {
	start time.Time

	mu  sync.Mutex
	w   io.Writer
	err error // the first
}

func (t *tracer) print(e mqtt.Event) {
	line := traceLine(e, e.Time.Sub(t.start))
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := io.WriteString(t.w, line); err != nil && t.err == nil {
		t.err = fmt.Errorf("trace: %w", err)
	}
}

// traceLine is seconds since the start, direction, packet, packet identifier and
// size, then what the packet says.
func traceLine(e mqtt.Event, since time.Duration) string {
	var b strings.Builder
	arrow := "<-"
	if e.Sent {
		arrow = "->"
	}
	fmt.Fprintf(&b, "%9.6f %s %s", since.Seconds(), arrow, e.Type)
	if e.ID != 0 {
		fmt.Fprintf(&b, " #%d", e.ID)
	}
	fmt.Fprintf(&b, " (%d bytes)", e.Size)
	if e.Duplicate {
		b.WriteString(" DUP")
	}
	if e.Detail != "" {
		b.WriteString(" " + format.Escape(e.Detail))
	}
	if m := e.Message; m != nil {
		b.WriteString(" " + messageWords(m))
	}
	b.WriteByte('\n')
	return b.String()
}

// messageWords says what a PUBLISH is in the protocol of the store.
func messageWords(m *mqtt.Message) string {
	var b strings.Builder
	client, key, isNotification := wire.ParseNotifyTopic(m.Topic)
	switch {
	case m.Topic == wire.RequestTopic:
		b.WriteString("request " + requestWords(m.Payload))
	case isNotification:
		fmt.Fprintf(&b, "notification for client %s, key %s: %s", shownKey(client), shownKey(key), requestWords(m.Payload))
	case m.Correlation != nil:
		b.WriteString("reply " + shown(m.Payload))
	default:
		fmt.Fprintf(&b, "message %s on %s", shown(m.Payload), shownKey(m.Topic))
	}
	if m.Correlation != nil {
		fmt.Fprintf(&b, ", correlation %x", m.Correlation)
	}
	for _, p := range m.User {
		fmt.Fprintf(&b, ", %s=%s", format.Escape(p.Name), format.Word(p.Value))
	}
	if m.ResponseTopic != "" {
		b.WriteString(", response topic " + shownKey(m.ResponseTopic))
	}
	if m.Expiry > 0 {
		fmt.Fprintf(&b, ", expires in %v", m.Expiry)
	}
	return b.String()
}

func requestWords(payload []byte) string {
	words, err := wire.ParseRequest(payload)
	if err != nil {
		return shown(payload)
	}
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(cut(w, format.Word[[]byte]))
	}
	return b.String()
}

// shown quotes bytes of which there may be many.
func shown(b []byte) string { return cut(b, format.Quote[[]byte]) }

// shownKey quotes a key, or a name, in a message.
func shownKey(s string) string { return cut([]byte(s), format.Quote[[]byte]) }

func cut(b []byte, quote func([]byte) string) string {
	const most = 120
	if len(b) <= most {
		return quote(b)
	}
	return fmt.Sprintf("%s… (%d bytes)", quote(b[:most]), len(b))
}

func lower(verb string) string { return strings.ToLower(format.Escape(verb)) }
