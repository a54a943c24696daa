package shell

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/internal/mqtt"
)

// A connection has the session that all lines of a shell share, and the settings that every line begins
// with. It implements [app.Shell]. Lines run one after the other, so a connection needs no mutex.
type connection struct {
	settings config.Settings
	options  client.Options
	limit    time.Duration   // how long completion waits for the store
	session  *client.Session // nil before the first connection
	tap      tap
	keys     keyMemory // keys that lines have named, or that the store has listed
	locks    keyMemory // locks that lines have named
	noScan   bool      // the store has refused to list keys
}

// Session implements [app.Shell]: it returns the session of the shell. It connects if there is no
// session. It also connects again after a permanent error, because the user may have fixed the cause.
func (c *connection) Session(ctx context.Context) (*client.Session, error) {
	if c.session != nil && client.IsPermanent(c.session.Err()) {
		_ = c.session.Close() // its error was already reported
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

// up reports whether the session is connected, or has not yet noticed that the connection was lost.
func (c *connection) up() bool { return c.session != nil && c.session.Err() == nil }

// Broker implements [app.Shell]: it returns the options of the shell, with the timeout of the line, and
// turns on the trace of the line. The returned function turns the trace off.
func (c *connection) Broker(a *app.App) (client.Options, func() error, error) {
	if a.Refused != "" {
		return client.Options{}, nil, &fault.UsageError{
			Err:  fault.Usagef("%s on a line: a shell keeps one connection", a.Refused),
			Hint: suggest.Try("leave the shell, then `sscli " + a.Refused + " ... shell`"),
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
	o.ClientID = "" // a second connection with the shell's client id would end the first
	o.Timeout = a.Timeout()
	return o, func() error {
		c.tap.line.Store(nil)
		return end()
	}, nil
}

// A tap passes on the packets of a connection. Several goroutines may use it.
type tap struct {
	always func(mqtt.Event)                 // called for every packet; may be nil
	line   atomic.Pointer[func(mqtt.Event)] // called for the packets during a line; nil between lines
}

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
