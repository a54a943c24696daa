// Package gateway is the command `sscli gateway`, which serves a broker's state store to Redis
// clients.
//
// [New] returns the command. Package redis implements the Redis commands. This package has the flags,
// the [redis.Backend] that sends requests to the store (backend.go), and the watches that turn
// notifications of the store into keyspace events (watch.go, expiry.go).
package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/redis"
)

type flags struct {
	listen   config.Text
	users    config.File
	port     accounts.Port
	watch    []string
	notify   string
	insecure bool
	log      app.LogFlags
}

// New returns the command `sscli gateway`.
func New(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:         "gateway [-- CMD...]",
		Short:       "Serve Redis clients from the state store",
		GroupID:     app.GroupServe,
		Annotations: map[string]string{app.LogsResults: "", app.RunsCommand: ""},
		Long: `Listen for Redis clients and send their commands to the broker's state store. Print the
URL for the clients when the gateway is ready.

The gateway serves what the state store can do: GET, SET with NX and PX, DEL, SCAN and the
notifications of single keys. SS.GET, SS.SET, SS.DEL and SS.VDEL have versions and fencing
tokens. docs/redis.md lists all commands.

With CMD, run CMD with REDIS_URL set to the gateway's URL, and exit with CMD's exit code.
If the broker refuses the gateway for good, CMD gets TERM, and the exit code is the one of
that error.

Notifications are off until --notify-keyspace-events or CONFIG SET turns them on. Clients
may SUBSCRIBE to __keyspace@0__:KEY of any key. PSUBSCRIBE and the __keyevent@0__ channels
report only the keys of --watch.

UNKNOWN is the reply to a write that got no answer: it may have been applied. LOADING
means that the broker cannot be reached and that nothing was sent. A subscriber that may
have missed a change is disconnected.

With -v, print a line on standard error for each command and its outcome. With -vv, also
print more about each command, and the clients that connect and disconnect. --log-format
json prints JSON.

--users reads lines as htpasswd -nbB NAME PASSWORD prints them. An address that is not
loopback requires --users, --tls-client-ca or --redis-insecure.`,
		Example: "  sscli gateway\n  sscli gateway --watch setpoint --notify-keyspace-events KEA\n  sscli gateway -- pytest\n  sscli gateway --listen :6379 --users users.txt --tls-cert server.crt --tls-key server.key",
		Args:    usage.Child,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, f, args)
		},
	}
	fs := cmd.Flags()
	fs.Var(&f.listen, "listen", "`HOST:PORT` to listen on; port 0 means any free port (default 127.0.0.1:6379, with CMD 127.0.0.1:0)")
	fs.StringArrayVar(&f.watch, "watch", nil, "report the changes of `KEY` to patterns and __keyevent@0__ channels too; may be repeated")
	fs.StringVar(&f.notify, "notify-keyspace-events", "", "`FLAGS` of the notifications to clients, such as KEA (default: none)")
	fs.Var(&f.users, "users", "`FILE` of the users who may connect: lines of NAME:PASSWORD, the password plain or a bcrypt hash")
	fs.Var(&f.port.Cert, "tls-cert", "PEM `FILE` with the server's certificate and its intermediate certificates; enables TLS")
	fs.Var(&f.port.Key, "tls-key", "PEM `FILE` with the key of --tls-cert")
	fs.Var(&f.port.ClientCA, "tls-client-ca", "PEM `FILE` with the CA of client certificates; requires clients to have one")
	fs.BoolVar(&f.insecure, "redis-insecure", false, "allow clients without a login on an address that is not loopback")
	f.log.Bind(fs)
	return cmd
}

// prepare checks the flags. It returns the address to listen on, the options of the server, and the
// TLS configuration, which is nil for plain TCP. command reports whether the user gave a CMD.
func (f flags) prepare(command bool, warn func(string)) (listen string, o redis.Options, tlsConfig *tls.Config, err error) {
	listen = cmp.Or(string(f.listen), "127.0.0.1:6379")
	if f.listen == "" && command {
		listen = "127.0.0.1:0"
	}
	o.Notify = f.notify
	if slices.Contains(f.watch, "") {
		return listen, o, nil, fault.Usagef("--watch: the key is empty")
	}
	if f.users != "" {
		users, err := accounts.ReadUsers(string(f.users))
		if err != nil {
			return listen, o, nil, &fault.UsageError{Err: fmt.Errorf("--users: %w", err)}
		}
		o.Login = func(user string, password []byte) (string, time.Time, bool) {
			return user, time.Time{}, users.Check(user, password)
		}
	}
	if tlsConfig, err = f.port.TLS(warn); err != nil {
		return listen, o, nil, err
	}
	if f.port.ClientCA != "" {
		o.Identify = redis.CommonName
	}
	loopback, err := config.IsLoopback(listen)
	if err == nil && !loopback && o.Login == nil && f.port.ClientCA == "" && !f.insecure {
		return listen, o, nil, accounts.Exposed("--listen", listen, "anybody who can reach this address could read and write the store",
			"`--users FILE`, or `--redis-insecure` to allow it")
	}
	return listen, o, tlsConfig, nil // net.Listen will report an invalid address
}

func run(ctx context.Context, a *app.App, f flags, command []string) (err error) {
	accounts.WarnExposed(a, "--users", string(f.users))
	accounts.WarnExposed(a, "--tls-key", string(f.port.Key))
	listen, o, tlsConfig, err := f.prepare(len(command) > 0, a.Warn)
	if err != nil {
		return err
	}
	if err := a.Settings.Broker(); err != nil {
		return err
	}
	log, err := f.log.Open(a)
	if err != nil {
		return err
	}
	if log != nil {
		o.Observe = func(_ *redis.Caller, e observe.Event, _, _ bool) { log.Observe(e) }
	}
	if err := a.Confirm(ctx, "let Redis clients write"); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return &fault.UsageError{Err: fmt.Errorf("listen on %s: %w", listen, err), Hint: suggest.Try("another `--listen`, such as 127.0.0.1:0 for any free port")}
	}
	defer ln.Close()
	ready := format.Serving{Op: "gateway", URL: admission.URL("redis", ln.Addr())}
	if !a.Settings.Embedded {
		ready.Store = a.Settings.URL()
	}
	if tlsConfig != nil {
		ready.URL = admission.URL("rediss", ln.Addr())
		ln = admission.ListenTLS(ln, tlsConfig, new(admission.Line))
	}
	ready.Paste = []string{"redis-cli -u " + ready.URL}
	return a.WithSession(ctx, func(s *client.Session, co client.Options) (err error) {
		b, err := open(ctx, s, co.Timeout, a.Logger(), f.watch, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		b.server.Serve(ln)
		if len(command) > 0 {
			return b.runChild(a, process.Command{Args: command, Env: process.Environ(map[string]string{"REDIS_URL": ready.URL})})
		}
		ended := make(chan error, 1)
		b.running.Go(func() { ended <- b.keepConnected(b.ctx) })
		if err := a.Emit(ready); err != nil {
			return err
		}
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return fault.ServerEnded(context.Cause(ctx))
		}
	})
}

// runChild runs a command and keeps the connection to the broker meanwhile. If the broker refuses this client
// permanently, runChild prints the error, ends the command with TERM, and returns the code of that error.
func (b *backend) runChild(a *app.App, c process.Command) error {
	stop := make(chan struct{})
	var refused error
	b.running.Go(func() {
		if err := b.keepConnected(b.ctx); err != nil {
			a.Refuse(&refused, err)
			close(stop)
		}
	})
	c.Stop = stop
	err := fault.RunChild(c)
	select {
	case <-stop:
		return refused
	default:
		return err
	}
}
