package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/trace"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/mqtt"
)

// A Shell is the state that the lines of an interactive shell share.
type Shell interface {
	// Settings returns the settings that every line starts from.
	Settings() config.Settings
	// Broker returns the options for a line's requests. Call end after the requests.
	Broker(*App) (o client.Options, end func() error, err error)
	// Session returns the connection that all lines share, and connects if there is none.
	Session(context.Context) (*client.Session, error)
	// RememberKey remembers keys for completion.
	RememberKey(keys ...string)
	// KeysWith returns the remembered keys and, if the broker has SCAN, the store's keys that begin
	// with prefix, sorted. all is false if the store may have more keys.
	KeysWith(prefix string) (keys []string, all bool)
	// LocksWith returns the names of locks that begin with prefix. A shell knows the locks that its
	// lock commands named. If none of them begins with prefix, LocksWith returns the result of
	// KeysWith.
	LocksWith(prefix string) (names []string, all bool)
}

// WithBroker calls f with the options for connecting to the configured broker. The emulator of
// --embedded and the file of --trace-file stay open until f returns. The error wraps an error from
// f, a *config.NoBrokerError, a *config.Error about a file, or an error of the emulator or the
// trace.
func (a *App) WithBroker(f func(o client.Options) error) (err error) {
	o, end, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return f(o)
}

// WithSession connects, calls f, and disconnects. In a shell, f gets the shell's session, which stays
// connected.
func (a *App) WithSession(ctx context.Context, f func(s *client.Session, o client.Options) error) error {
	return a.WithBroker(func(o client.Options) error {
		return a.Connect(ctx, o, func(s *client.Session) error { return f(s, o) })
	})
}

// Connect is like WithSession, with the options of WithBroker. Each attempt to connect has the timeout
// o.Timeout, and attempts are repeated for up to --retry-for.
func (a *App) Connect(ctx context.Context, o client.Options, f func(*client.Session) error) (err error) {
	a.Signals.Arm()
	r := a.NewRetry(a.Settings.RetryFor)
	r.Timeout = o.Timeout
	if a.Shell == nil {
		return a.Session(ctx, o, func(s *client.Session) error {
			if err := r.Do(ctx, s.Connect); err != nil {
				return err
			}
			return f(s)
		})
	}
	var s *client.Session
	err = r.Do(ctx, func(ctx context.Context) (err error) {
		if s, err = a.Shell.Session(ctx); err == nil {
			err = s.Connect(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	return f(s)
}

// Session is like Connect, but f gets a session that connects when its first request comes, and signals are
// caught only if the caller has armed them or the request takes longer than signals waits: to catch them
// takes a tenth of the time of a get.
func (a *App) Session(ctx context.Context, o client.Options, f func(*client.Session) error) (err error) {
	if a.Shell != nil {
		return a.Connect(ctx, o, f)
	}
	s, err := client.New(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(s)
}

// Timeout returns the time limit of a request: --timeout or the default. It is o.Timeout of WithBroker.
func (a *App) Timeout() time.Duration { return cmp.Or(a.Settings.Timeout, client.DefaultTimeout) }

// broker returns the options for WithBroker, and a function to call after their last use.
func (a *App) broker() (o client.Options, end func() error, err error) {
	if a.Shell != nil {
		return a.Shell.Broker(a)
	}
	s := a.Settings
	if err := s.Broker(); err != nil {
		return client.Options{}, nil, err
	}
	o = client.Options{
		Address:       s.Address,
		Username:      s.Username,
		ClientID:      s.ClientID,
		ResponseTopic: s.ResponseTopic,
		HighPriority:  s.HighPriority,
		NoPipelining:  s.NoPipelining,
		Timeout:       a.Timeout(),

		MetricCategory: s.MetricCategory,
	}
	if s.ClientIDPrefix != "" {
		o.ClientID = s.ClientIDPrefix + "-" + strings.ToLower(rand.Text()[:16])
	}
	if s.PasswordFile != "" {
		o.Password = certs.SecretReader(s, "password-file", s.PasswordFile)
		if _, err = o.Password(); err != nil {
			return o, nil, err
		}
	}
	if s.AskPass && a.password != nil {
		o.Password = client.Secret(string(a.password))
	}
	if !s.Embedded {
		o.TokenFile, o.WebSocket, o.Proxy = s.SATFile, s.WebSocket, s.Proxy
	}
	if files.ComesOnce(o.TokenFile) {
		read := files.Again(func() ([]byte, error) { return client.ReadToken(s.SATFile) }, s.SATFile)
		o.TokenFile, o.ReadToken = "", func(context.Context) ([]byte, error) { return read() }
	}
	if s.TLS && s.Insecure {
		a.Warn("the broker's certificate is not verified (" + s.Sources["tls-insecure"].String() + "): anybody can be the broker")
	}
	if o.TLS, err = certs.TLSConfig(s, a.Warn); err != nil {
		return o, nil, err
	}
	var closeTrace func() error
	o.Trace, closeTrace, err = a.Tracer(s.Trace, s.TraceFile)
	if err != nil {
		return o, nil, err
	}
	if s.Via != nil {
		a.Cluster = a.Way(&o, "")
		return o, func() error { return errors.Join(a.Cluster.Close(), closeTrace()) }, nil
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

// Way returns the connection into the cluster that --via names, and sets fields of o so that
// clients connect through it. If temp is not empty, it names a directory that is removed if sscli
// is killed while kubectl runs.
func (a *App) Way(o *client.Options, temp string) *via.Way {
	s := a.Settings
	vo := via.Options{Target: *s.Via, CA: s.ClusterCA(), Account: s.ClusterAccount(), Inform: a.Inform, Temp: temp}
	if vo.CA != "" {
		vo.Roots = x509.NewCertPool()
		o.TLS.RootCAs = vo.Roots
	}
	way := via.New(vo)
	o.Dial = way.Dial
	if vo.Account != "" {
		o.ReadToken = way.Token
	}
	return way
}

// RememberKey makes the shell, if there is one, remember keys for completion.
func (a *App) RememberKey(keys ...string) {
	if a.Shell != nil {
		a.Shell.RememberKey(keys...)
	}
}

// Tracer opens a trace and returns tap, which writes an event to it. The trace goes to standard
// error if stderr is true, and to file if file is not empty. Call end after the last event. The
// error is a *config.Error.
func (a *App) Tracer(stderr bool, file string) (tap func(mqtt.Event), end func() error, err error) {
	var w io.Writer
	if stderr {
		w = a.errors()
	}
	tap, end, err = trace.Open(w, file, a.Settings.TraceFormat == "json")
	if err != nil {
		err = &config.Error{Source: a.Settings.Sources["trace-file"], Why: err.Error()}
	}
	return tap, end, err
}

// InContext returns an App for a second connection: to the broker of the context called name, or with that
// URL. It resolves the settings as -c or -u does, and keeps the flags in fs that are not connection flags. source is
// the flag that gave the name, for errors. InContext returns the same errors as
// [App.ConfigureConnection].
func (a *App) InContext(ctx context.Context, fs *pflag.FlagSet, name, source string) (*App, error) {
	given := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(given)
	set := map[string]string{"context": name}
	if strings.Contains(name, "://") {
		set = map[string]string{"url": name}
	}
	if a.Settings.ContextFile != "" {
		set["config"] = a.Settings.ContextFile
	}
	fs.Visit(func(f *pflag.Flag) {
		if f.Name == "config" || given.Lookup(f.Name) != nil && !slices.Contains(config.ConnectionFlags(), f.Name) {
			set[f.Name] = f.Value.String()
		}
	})
	for flag, value := range set {
		if err := given.Set(flag, value); err != nil {
			return nil, err
		}
	}
	other := &App{Commands: a.Commands, Topics: a.Topics, Build: a.Build, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Env: a.Env, Signals: a.Signals, LogsResults: a.LogsResults, Forms: a.Forms}
	err := other.ConfigureConnection(ctx, given)
	if unknown, ok := errors.AsType[*config.UnknownContextError](err); ok {
		unknown.Source = source
	}
	if err != nil {
		return nil, err
	}
	if s := &other.Settings; s.ClientID == a.Settings.ClientID && s.Address == a.Settings.Address {
		s.ClientID = "" // with the same id, each connection would take over the other
	}
	return other, nil
}
