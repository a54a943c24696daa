package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/emulator"
)

// A Shell is what the lines of an interactive shell share. A command line outside of
// one has none.
type Shell interface {
	// Settings returns the settings that every line begins with.
	Settings() config.Settings
	// Broker is App.Broker for a line.
	Broker(*app) (client.Options, func() error, error)
	// Session returns the connection of all lines, and makes it if there is none.
	Session(context.Context) (*client.Session, error)
	// Saw remembers keys for completion. KeysWith returns the known keys that begin
	// with prefix.
	Saw(keys ...string)
	KeysWith(prefix string) []string
}

// withSession connects, and closes what it opened when f has returned.
func (a *app) withSession(ctx context.Context, f func(s *client.Session, o client.Options) error) (err error) {
	o, undo, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	s, hangUp, err := a.dial(limited, o)
	cancel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hangUp()) }()
	return f(s, o)
}

// broker returns how to reach the configured broker, and what undoes it.
func (a *app) broker() (client.Options, func() error, error) {
	if a.shell != nil {
		return a.shell.Broker(a)
	}
	s := a.settings
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
	if o.Password, err = readSecret(s, "password-file", s.PasswordFile); err != nil {
		return o, nil, err
	}
	if s.AskPass {
		o.Password = a.password
	}
	if !s.Embedded {
		o.TokenFile, o.WebSocket, o.Proxy = s.SATFile, s.WebSocket, s.Proxy
	}
	if s.TLS && s.Insecure {
		a.warn("the broker's certificate is not verified ("+s.Sources["tls-insecure"]+"): anybody can be the broker", "")
	}
	if o.TLS, err = tlsConfig(s); err != nil {
		return o, nil, err
	}
	closeTrace, err := a.trace(&o)
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
func (a *app) dial(ctx context.Context, o client.Options) (*client.Session, func() error, error) {
	if a.shell != nil {
		s, err := a.shell.Session(ctx)
		return s, func() error { return nil }, err
	}
	s, err := client.Dial(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// saw remembers the keys of requests, in a shell.
func (a *app) saw(keys ...string) {
	if a.shell != nil {
		a.shell.Saw(keys...)
	}
}

// trace lets every packet be printed, if that was asked for. end ends the trace.
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

// tracer is openTrace with the error of a setting.
func (a *app) tracer(stderr bool, file string) (print func(mqtt.Event), end func() error, err error) {
	var w io.Writer
	if stderr {
		w = a.stderr
	}
	print, end, err = openTrace(w, file)
	if err != nil {
		err = &config.Error{Source: a.settings.Sources["trace-file"], Why: err.Error()}
	}
	return print, end, err
}
