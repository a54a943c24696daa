// Package trace prints the packets on a connection, one per line, and explains the requests,
// replies and notifications of the store among them.
//
//	tap, end, err := trace.Open(os.Stderr, "", false)
//	o.Trace = tap // o is a client.Options
//	...
//	err = end()
//
// A [KeyLog] collects the lines about keys.
//
// Lines are always printable text, because bytes from the broker are escaped. Passwords and
// tokens never appear, because package mqtt keeps them out of its events.
package trace

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// Open returns the function tap, which prints a line for each packet to w, and appends the line to the
// file with the given name: a text, or an object if asJSON is true. w may be nil, and name may be empty. If there is
// neither, tap is nil.
// tap may be called concurrently. end closes the file, and returns the first error of a write to the
// file. Errors of w are ignored.
func Open(w io.Writer, name string, asJSON bool) (tap func(mqtt.Event), end func() error, err error) {
	t := &tracer{w: w, start: time.Now(), line: Line}
	if asJSON {
		t.line = jsonLine
	}
	if name != "" {
		if t.file, err = files.OpenPrivate(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return nil, nil, err
		}
	}
	if w == nil && t.file == nil {
		return nil, func() error { return nil }, nil
	}
	return t.print, func() error {
		if t.file == nil {
			return nil
		}
		return errors.Join(t.err, t.file.Close())
	}, nil
}

// Tee returns a function that calls first, then second. first may be nil.
func Tee(first, second func(mqtt.Event)) func(mqtt.Event) {
	if first == nil {
		return second
	}
	return func(e mqtt.Event) {
		first(e)
		second(e)
	}
}

// A tracer prints one line for each packet.
type tracer struct {
	start time.Time
	line  func(e mqtt.Event, since time.Duration) string

	mu   sync.Mutex
	w    io.Writer // nil = none
	file *os.File  // nil = none
	err  error     // the first write error of file
}

func (t *tracer) print(e mqtt.Event) {
	line := t.line(e, e.Time.Sub(t.start))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.w != nil {
		_, _ = io.WriteString(t.w, line)
	}
	if t.file == nil {
		return
	}
	if _, err := t.file.WriteString(line); err != nil && t.err == nil {
		t.err = fmt.Errorf("trace: %w", err)
	}
}

// Line returns the line for a packet: seconds since the start, direction, packet type, packet
// identifier, size, DUP if it is a duplicate, and contents.
func Line(e mqtt.Event, since time.Duration) string {
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

// jsonLine is like Line, as JSON.
func jsonLine(e mqtt.Event, since time.Duration) string {
	p := format.Packet{
		Elapsed: since, Sent: e.Sent, Type: e.Type, ID: int(e.ID), Size: e.Size, Duplicate: e.Duplicate, Detail: e.Detail,
		Client: e.ClientID, User: e.Username, Filters: e.Filters,
	}
	for _, code := range e.Codes {
		p.Codes = append(p.Codes, int(code))
	}
	if m := e.Message; m != nil {
		p.Topic, p.ResponseTopic, p.Correlation = m.Topic, m.ResponseTopic, hex.EncodeToString(m.Correlation)
		for _, user := range m.User {
			p.Properties = append(p.Properties, user.Name+"="+user.Value)
		}
		p.Payload = m.Payload
		if _, _, isNotification := wire.ParseNotifyTopic(m.Topic); isNotification || m.Topic == wire.RequestTopic {
			if words, err := wire.ParseRequest(m.Payload); err == nil {
				p.Words, p.Payload = words, nil
			}
		}
	}
	return string(p.JSON())
}

// messageWords describes a PUBLISH: whether it is a request, a reply or a notification, and its
// contents.
func messageWords(m *mqtt.Message) string {
	var b strings.Builder
	client, key, isNotification := wire.ParseNotifyTopic(m.Topic)
	switch {
	case m.Topic == wire.RequestTopic:
		b.WriteString("request " + requestWords(m.Payload))
	case isNotification:
		fmt.Fprintf(&b, "notification for client %s, key %s: %s", format.Brief(client), format.Brief(key), requestWords(m.Payload))
	case m.Correlation != nil:
		b.WriteString("reply " + format.Brief(m.Payload))
	default:
		fmt.Fprintf(&b, "message %s on %s", format.Brief(m.Payload), format.Brief(m.Topic))
	}
	if m.Correlation != nil {
		fmt.Fprintf(&b, ", correlation %x", m.Correlation)
	}
	for _, p := range m.User {
		fmt.Fprintf(&b, ", %s=%s", format.Escape(p.Name), format.Word(p.Value))
	}
	if m.ResponseTopic != "" {
		b.WriteString(", response topic " + format.Brief(m.ResponseTopic))
	}
	if m.Expiry > 0 {
		fmt.Fprintf(&b, ", expires in %v", m.Expiry)
	}
	return b.String()
}

func requestWords(payload []byte) string {
	words, err := wire.ParseRequest(payload)
	if err != nil {
		return format.Brief(payload)
	}
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(format.BriefWord(w))
	}
	return b.String()
}
