package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/trace"
	"github.com/sscli/sscli/emulator"
)

// A Shell is what the lines of an interactive shell share. A command line outside of
// one has none.
type Shell interface {
	// Settings returns the settings that every line begins with.
	Settings() config.Settings
	// Broker is App.Broker for a line.
	Broker(*App) (client.Options, func() error, error)
	// Session returns the connection of all lines, and makes it if there is none.
	Session(context.Context) (*client.Session, error)
	// Saw remembers keys for completion. KeysWith returns the known keys that begin
	// with prefix.
	Saw(keys ...string)
	KeysWith(prefix string) []string
}

// withSession connects, and closes what it opened when f has returned.
func (a *App) WithSession(ctx context.Context, f func(s *client.Session, o client.Options) error) (err error) {
	o, undo, err := a.Broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	s, hangUp, err := a.Dial(limited, o)
	cancel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hangUp()) }()
	return f(s, o)
}

// broker returns how to reach the configured broker, and what undoes it.
func (a *App) Broker() (client.Options, func() error, error) {
	if a.Shell != nil {
		return a.Shell.Broker(a)
	}
	s := a.Settings
	if err := s.Broker(); err != nil {
		return client.Options{}, nil, err
	}
	o := client.Options{
		Address:       s.Address,
		Username:      s.Username,
		ClientID:      s.ClientID,
		ResponseTopic: s.ResponseTopic,
		HighPriority:  s.HighPriority,
		NoPipelining:  s.NoPipelining,
		Timeout:       s.Timeout,
	}
	if o.Timeout == 0 {
		o.Timeout = client.DefaultTimeout
	}
	if s.ClientIDPrefix != "" {
		o.ClientID = s.ClientIDPrefix + "-" + strings.ToLower(rand.Text()[:16])
	}
	var err error
	if o.Password, err = certs.ReadSecret(s, "password-file", s.PasswordFile); err != nil {
		return o, nil, err
	}
	if s.AskPass {
		o.Password = a.Password
	}
	if !s.Embedded {
		o.TokenFile, o.WebSocket, o.Proxy = s.SATFile, s.WebSocket, s.Proxy
	}
	if s.TLS && s.Insecure {
		a.Warn("the broker's certificate is not verified ("+s.Sources["tls-insecure"]+"): anybody can be the broker", "")
	}
	if o.TLS, err = certs.TLSConfig(s); err != nil {
		return o, nil, err
	}
	var closeTrace func() error
	o.Trace, closeTrace, err = a.Tracer(s.Trace, s.TraceFile)
	if err != nil {
		return o, nil, err
	}
	if !s.Embedded {
		return o, closeTrace, nil
	}
	server, err := emulator.New(emulator.Options{})
	if err != nil {
		return o, nil, errors.Join(err, closeTrace())
	}
	o.Address = server.Addr().String()
	return o, func() error { return errors.Join(server.Close(), closeTrace()) }, nil
}

// dial returns a session with the broker, and what ends it: on the command line one
// of its own, in a shell the shell's.
func (a *App) Dial(ctx context.Context, o client.Options) (*client.Session, func() error, error) {
	if a.Shell != nil {
		s, err := a.Shell.Session(ctx)
		return s, func() error { return nil }, err
	}
	s, err := client.Dial(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// saw remembers the keys of requests, in a shell.
func (a *App) Saw(keys ...string) {
	if a.Shell != nil {
		a.Shell.Saw(keys...)
	}
}

// tracer is openTrace with the error of a setting.
func (a *App) Tracer(stderr bool, file string) (print func(mqtt.Event), end func() error, err error) {
	var w io.Writer
	if stderr {
		w = a.Stderr
	}
	print, end, err = trace.Open(w, file)
	if err != nil {
		err = &config.Error{Source: a.Settings.Sources["trace-file"], Why: err.Error()}
	}
	return print, end, err
}
