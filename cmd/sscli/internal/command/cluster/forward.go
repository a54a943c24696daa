package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

// NewForward returns the command `sscli forward`.
func NewForward(a *app.App) *cobra.Command {
	listen := config.Text("127.0.0.1:0")
	cmd := &cobra.Command{
		Use:         "forward [-- CMD...]",
		Short:       "Keep a connection into a cluster open",
		GroupID:     app.GroupServe,
		Annotations: map[string]string{app.LogsResults: "", app.RunsCommand: ""},
		Long: `Keep the connection of --via open for other commands, and print how to connect through it.
These commands start as fast as commands that connect directly.

With CMD, run CMD with the connection in its environment (SSCLI_URL and others), and exit
with the exit code of CMD.

The address stays the same when the broker's pod ends and another one takes its place, but
connections through the old pod are lost. The broker's CA and the token are in files that
only you can read. forward replaces the token before it expires, and removes the files
when it ends.`,
		Example: `  sscli forward --via kubectl
  sscli forward --via kubectl -- ./deploy.sh
  sscli forward --via kubectl -- bash`,
		Args: usage.Child,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, string(listen), args)
		},
	}
	cmd.Flags().Var(&listen, "listen", "loopback `ADDRESS` to listen on; port 0 means any free port")
	return cmd
}

// run forwards connections until ctx ends or the child command exits.
func run(ctx context.Context, a *app.App, listen string, args []string) (err error) {
	s := a.Settings
	if none, ok := errors.AsType[*config.NoBrokerError](s.Broker()); ok && len(none.Contexts) > 0 {
		return none
	}
	if s.Via == nil {
		return &fault.UsageError{Err: errors.New("forward keeps a connection into a cluster open: add --via"), Hint: suggest.Try("`sscli forward --via kubectl`")}
	}
	if local, err := config.IsLoopback(listen); err != nil || !local {
		return fault.Usagef("--listen %s: expected an address of the loopback interface, such as 127.0.0.1:18883", format.Escape(listen))
	}
	a.Signals.Arm()
	o := client.Options{}
	if o.TLS, err = certs.TLSConfig(s, a.Warn); err != nil {
		return err
	}
	dir, err := newDirectory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.remove()) }()
	way := a.Way(&o, dir.path)
	defer func() { err = errors.Join(err, way.Close()) }()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fault.Usagef("--listen %s: %w", format.Escape(listen), err)
	}
	fwd := &forwarder{outage: app.Outage{Notify: a.Notify}, dial: o.Dial, listener: l, timeout: a.Timeout()}
	defer func() { err = errors.Join(err, fwd.close()) }()
	limited, cancel := context.WithTimeout(ctx, fwd.timeout)
	defer cancel()
	if err := way.Open(limited); err != nil {
		return err
	}
	f := &secrets{a: a, dir: dir.path, token: o.ReadToken}
	if s.CAFile, err = f.writeCA(limited, way, s); err != nil {
		return err
	}
	if s.SATFile, err = f.writeToken(limited, s); err != nil {
		return err
	}
	if s.TLS {
		host, _, _ := net.SplitHostPort(s.Address) // config has checked the address
		s.ServerName = cmp.Or(s.ServerName, host)
	}
	s.Via, s.Address = nil, l.Addr().String()
	fwd.start(ctx)
	refresh, stop := context.WithCancel(ctx)
	defer f.refreshing.Wait()
	defer stop()
	f.refreshing.Go(func() { f.refresh(refresh) })
	if len(args) > 0 {
		set, drop := s.Environ()
		return fault.RunChild(process.Command{Args: args, Env: process.Environ(set, drop...)})
	}
	if err := a.Emit(ready(a, s)); err != nil {
		return err
	}
	<-ctx.Done()
	return fault.ServerEnded(context.Cause(ctx))
}

// ready returns the result that shows how other commands connect.
func ready(a *app.App, s config.Settings) format.Serving {
	f := format.Serving{Op: "forward", URL: s.URL(), ServerName: s.ServerName, CAFile: s.CAFile, SATFile: s.SATFile}
	set, _ := s.Environ()
	f.Paste = config.ExportURL(a.Env, set["SSCLI_URL"])
	for _, name := range []string{"SSCLI_CA_FILE", "SSCLI_TLS_SERVER_NAME", "SSCLI_SAT_FILE", "SSCLI_USERNAME", "SSCLI_PASSWORD_FILE"} {
		if value := set[name]; value != "" {
			f.Paste = append(f.Paste, config.Export(name, value))
		}
	}
	f.Paste = append(f.Paste, "sscli ping")
	return f
}

// connectTimeout replaces a timeout with an error that says what timed out. It returns any other
// error unchanged.
func connectTimeout(within time.Duration, err error) error {
	if fault.IsTimeout(err) {
		return fmt.Errorf("no connection into the cluster within %v", within)
	}
	return err
}
