package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/mqtt"
)

// checkAttach returns a usage error if --attach is combined with a command, with --load, or with a
// flag for the emulator's own broker. If redis is true, flags that also configure the Redis port
// are allowed.
func checkAttach(fs *pflag.FlagSet, args []string, redis bool) error {
	if len(args) > 0 {
		return fault.Usagef("--attach together with a command: use only one of them")
	}
	if load, err := fs.GetStringArray("load"); err == nil && len(load) > 0 {
		return &fault.UsageError{
			Err:  errors.New("--attach together with --load: the store of another broker gets its keys from clients"),
			Hint: suggest.Try("`sscli apply FILE`, with the same connection flags").Fill(suggest.File, load[0]),
		}
	}
	refused := []string{"listen", "listen-client-ca", "ws", "ws-origin", "no-login", "sat-tokens", "allow", "policy", "attributes", "sat-audience", "sat-jwks", "sat-issuer", "sat-key", "sat-out", "sat-user", "sat-ttl", "latency", "max-packet-size", "limit", "refuse-filter", "control", "control-insecure"}
	if !redis {
		refused = append(refused, "listen-cert", "listen-key", "self-signed", "self-signed-names", "client-files", "users")
	}
	for _, name := range refused {
		if fs.Changed(name) {
			return fault.Usagef("--attach together with --%s: with --attach the broker is the one that the connection flags name", name)
		}
	}
	return nil
}

// checkListen returns a usage error for connection flags, which serve uses only with --attach. It
// ignores variables and contexts, because the user may have set those for other commands.
func checkListen(fs *pflag.FlagSet) error {
	for _, name := range config.ConnectionFlags() {
		if !fs.Changed(name) {
			continue
		}
		host, port := "127.0.0.1", "1883"
		value := fs.Lookup(name).Value.String()
		switch name {
		case "host":
			host = value
			if fs.Changed("port") {
				port = fs.Lookup("port").Value.String()
			}
		case "port":
			port = value
		case "url":
			if u, err := url.Parse(value); err == nil && u.Hostname() != "" {
				host, port = u.Hostname(), cmp.Or(u.Port(), port)
			}
		default:
			return fault.Usagef("--%s is for a connection; serve makes one only with --attach", name)
		}
		return &fault.UsageError{
			Err:  fmt.Errorf("--%s is for a connection; serve listens on --listen", name),
			Hint: suggest.Run("sscli", "serve", "--listen", net.JoinHostPort(host, port)),
		}
	}
	return nil
}

func attach(ctx context.Context, a *app.App, f serveFlags) error {
	served, err := f.options(ctx, a.Warn)
	if err != nil {
		return err
	}
	if a.Settings.Embedded {
		return fault.Usagef("--attach together with %s: expected a broker to attach to", a.Settings.Sources["embedded"])
	}
	return a.WithBroker(func(o client.Options) error { return attachTo(ctx, a, o, f, served) })
}

// attachTo serves a store on the broker that o names.
func attachTo(ctx context.Context, a *app.App, o client.Options, f serveFlags, served emulator.Options) error {
	log, err := f.log.Open(a)
	if err != nil {
		return err
	}
	more := attachOptions(a, o)
	more.Standby, more.Skew, more.MaxKeys, more.Data = f.standby.Duration, served.Skew, served.MaxKeys, served.Data
	if log != nil {
		more.Observe = log.Observe
		served.Observe, served.Log = log.Observe, a.Logger()
	}
	var attached *emulator.Attached
	r := a.NewRetry(a.Settings.RetryFor)
	r.Timeout = o.Timeout + 20*time.Second // the store also waits for other stores and tests itself
	err = r.Do(ctx, func(ctx context.Context) (err error) {
		attached, err = emulator.Attach(ctx, more)
		return err
	})
	if err != nil {
		return attachError(a, err)
	}
	if f.standby.Given() {
		select {
		case <-attached.Ready():
		case <-attached.Done():
		case <-ctx.Done():
		}
	}
	if attached.Err() == nil && ctx.Err() == nil {
		if err := f.announce(a, attached, served); err != nil {
			return errors.Join(err, attached.Close())
		}
	}
	err = report(ctx, a, attached)
	if n := attached.Refused(); n > 0 {
		a.Warn(fmt.Sprintf("%d replies and notifications refused by the broker", n))
	}
	return err
}

// announce starts the Redis port, if there is one, and prints the URLs.
func (f serveFlags) announce(a *app.App, attached *emulator.Attached, served emulator.Options) error {
	redisURL, err := f.redis.serve(attached, served)
	if err == nil {
		err = a.Emit(format.Serving{Op: "serve", URL: a.Settings.URL()})
	}
	if err == nil && redisURL != "" {
		err = a.Emit(format.Serving{Op: "serve", URL: redisURL})
	}
	return err
}

// attachError describes why a store is not served on the broker.
func attachError(a *app.App, err error) error {
	if fault.IsA[*emulator.DataError](err) {
		return dataError(err)
	}
	err = fmt.Errorf("attach: %w", err)
	if f, _ := fault.Of(err); f.Code == fault.CodeConnection && a.Settings.RetryFor == 0 && fault.IsA[*mqtt.DialError](err) {
		return &fault.NextError{Err: err, Hint: suggest.Try("check host and port; `--retry-for 1m` waits for a broker that starts later")}
	}
	return err
}

// report warns about replies and notifications that the broker refused, at most once a second,
// until the store or ctx ends.
func report(ctx context.Context, a *app.App, attached *emulator.Attached) error {
	refused := make(chan error, 1)
	attached.OnRefused(func(err error) {
		select {
		case refused <- err:
		default: // one refusal is enough for the next warning
		}
	})
	next, pause := refused, (<-chan time.Time)(nil)
	for {
		select {
		case err := <-next:
			a.Advise(fmt.Sprintf("the broker refused a reply: %v; %d refused so far", err, attached.Refused()),
				suggest.Say("grant the client of serve --attach the right to publish to that topic"))
			next, pause = nil, time.After(time.Second)
		case <-pause:
			next, pause = refused, nil
		case <-attached.Done():
			return attachError(a, attached.Close())
		case <-ctx.Done():
			return errors.Join(fault.ServerEnded(context.Cause(ctx)), attached.Close())
		}
	}
}

// attachOptions returns how to connect to the broker that o names. Without --client-id, all stores have one client
// id, so that the broker itself lets only one of them be connected.
func attachOptions(a *app.App, o client.Options) emulator.AttachOptions {
	id := a.Settings.ClientID
	if id == "" {
		id = cmp.Or(a.Settings.ClientIDPrefix, "sscli") + "-store"
	}
	m := emulator.AttachOptions{
		Address: o.Address, TLS: o.TLS, WebSocket: o.WebSocket, Proxy: o.Proxy, Dial: o.Dial, ClientID: id, Username: o.Username,
		Password: o.Password, Trace: o.Trace, MetricCategory: cmp.Or(o.MetricCategory, client.DefaultMetricCategory),
		NoPipelining: o.NoPipelining, ResponseTopic: o.ResponseTopic, Timeout: o.Timeout, Log: a.Logger(),
	}
	if o.TokenFile != "" || o.ReadToken != nil {
		m.Token = o.Token
	}
	return m
}
