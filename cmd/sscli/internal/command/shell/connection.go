package shell

import (
	"context"
	"sync/atomic"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// A connection is the one connection that all lines of a shell share, with the settings that
// every line starts from. It implements [app.Shell]. Lines run one after the other, so it needs
// no lock.
type connection struct {
	settings config.Settings
	options  client.Options
	session  *client.Session // nil before the first connection
	tap      tap
	keys     keyMemory
	locks    keyMemory // the locks that lines have named
	noScan   bool      // the store has refused to list keys
}

// Session implements [app.Shell]: it returns the shell's session. It connects if there is no
// session, or if a permanent error has ended the session, because the user may have fixed the cause.
func (c *connection) Session(ctx context.Context) (*client.Session, error) {
	if c.session != nil && client.IsPermanent(c.session.Err()) {
		// The session's error was already reported.
		_ = c.session.Close()
		c.session = nil
	}
	if c.session != nil {
		return c.session, nil
	}
	s, err := client.Dial(ctx, c.options)
	if err == nil {
		c.session = s
	}
	return s, err
}

// up reports whether the session is connected, as far as it knows.
func (c *connection) up() bool { return c.session != nil && c.session.Err() == nil }

// Broker implements [app.Shell]: it returns the shell's options, with the timeout and the trace of
// the line.
func (c *connection) Broker(a *app.App) (client.Options, func() error, error) {
	if a.Refused != "" {
		return client.Options{}, nil, &fault.UsageError{
			Err:  fault.Usagef("%s on a line: a shell keeps one connection", a.Refused),
			Hint: "leave the shell, then sscli " + a.Refused + " ... shell",
		}
	}
	file := a.Settings.TraceFile
	if file == c.settings.TraceFile {
		file = "" // the shell already writes every packet to this file
	}
	printPacket, end, err := a.Tracer(a.Settings.Trace, file)
	if err != nil {
		return client.Options{}, nil, err
	}
	c.tap.line.Store(&printPacket)
	o := c.options
	o.ClientID = "" // for a second connection, which cannot share the shell's id
	if a.Settings.Timeout > 0 {
		o.Timeout = a.Settings.Timeout
	}
	return o, func() error {
		c.tap.line.Store(nil)
		return end()
	}, nil
}

// A tap turns the trace of a connection on and off. It may be used by several goroutines.
type tap struct {
	always func(mqtt.Event)                 // gets every packet; may be nil
	line   atomic.Pointer[func(mqtt.Event)] // gets the packets during a line; holds nil between lines
}

// print receives the trace events of the connection.
func (t *tap) print(e mqtt.Event) {
	if t.always != nil {
		t.always(e)
	}
	if line := t.line.Load(); line != nil && *line != nil {
		(*line)(e)
	}
}

// Settings implements [app.Shell]: it returns the settings that every line begins with.
func (c *connection) Settings() config.Settings { return c.settings }
