package shell

import (
	"context"
	"sync"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// A connection is the one connection that all lines of a shell share, with the settings that
// every line begins with. It is an [app.Shell]. Lines run one after the other, so it needs no
// lock.
type connection struct {
	settings config.Settings
	options  client.Options
	session  *client.Session // nil before the first connection
	tap      tap
	keys     keyMemory
	locks    keyMemory // the locks that were named
	noScan   bool      // the store has refused to list keys
}

// connect makes a session if there is none, or if a permanent error has ended the present one:
// its cause may be gone when the user tries again.
func (c *connection) connect(ctx context.Context) error {
	if c.session != nil && client.IsPermanent(c.session.Err()) {
		// Its error was reported.
		_ = c.session.Close()
		c.session = nil
	}
	if c.session != nil {
		return nil
	}
	s, err := client.Dial(ctx, c.options)
	if err != nil {
		return err
	}
	c.session = s
	return nil
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
		file = "" // the whole shell is traced to it already
	}
	print, end, err := a.Tracer(a.Settings.Trace, file)
	if err != nil {
		return client.Options{}, nil, err
	}
	c.tap.set(print)
	o := c.options
	o.ClientID = "" // for a second connection, which cannot share the shell's id
	if a.Settings.Timeout > 0 {
		o.Timeout = a.Settings.Timeout
	}
	return o, func() error {
		c.tap.set(nil)
		return end()
	}, nil
}

// A tap turns the trace of a connection on and off. It may be used by several goroutines.
type tap struct {
	always func(mqtt.Event) // gets every packet; may be nil

	mu   sync.Mutex
	line func(mqtt.Event) // gets the packets during a line; nil for none
}

// set makes print get the packets; nil for none.
func (t *tap) set(print func(mqtt.Event)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line = print
}

// print is the trace of the connection.
func (t *tap) print(e mqtt.Event) {
	if t.always != nil {
		t.always(e)
	}
	t.mu.Lock()
	line := t.line
	t.mu.Unlock()
	if line != nil {
		line(e)
	}
}

// Settings implements [app.Shell]: it returns the settings that every line begins with.
func (c *connection) Settings() config.Settings { return c.settings }

// Session implements [app.Shell]: it returns the shell's session, and connects if there is none.
func (c *connection) Session(ctx context.Context) (*client.Session, error) {
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c.session, nil
}
