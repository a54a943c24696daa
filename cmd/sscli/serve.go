package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/bcrypt"

	"github.com/sscli/sscli/cmd/sscli/child"
	"github.com/sscli/sscli/cmd/sscli/config"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

type serveFlags struct {
	listen, cert, key, clientCA config.Text
	ws, users, tokens           config.Text
	skew, latency               string
	maxKeys                     int
	maxPacket                   uint32
	attach                      bool
}

func (a *app) newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:         "serve [-- CMD...]",
		Short:       "Run an emulator of the broker with its state store",
		GroupID:     groupDebug,
		Annotations: map[string]string{offline: ""}, // but for --attach
		Long: `Run an MQTT 5 broker with a state store in it, for development and tests; what it holds
is gone when it ends. When it is ready it prints its URL.

With CMD, run CMD against it, with SSCLI_URL and the AIO_ variables set, and end with
its exit code. With --ws too, SSCLI_WS_URL is the URL of the WebSocket.

With --attach, be the store of a broker that has none, such as Mosquitto: a client of it
that answers the requests of the others.`,
		Example: "  sscli serve\n  sscli serve -- make integration-test\n  sscli serve --listen 127.0.0.1:0 --users users.txt\n  sscli serve --attach -u mqtt://127.0.0.1:1883",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usage("%.64q: want serve -- CMD...", unprotect(args[0]))
			}
			for i := range args {
				args[i] = unprotect(args[i])
			}
			if !f.attach {
				return a.serve(cmd.Context(), f, args)
			}
			if err := checkAttach(cmd.Flags(), args); err != nil {
				return err
			}
			if err := a.configureConnection(cmd.Context(), cmd.Flags()); err != nil {
				return err
			}
			return a.attach(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	fs.Var(&f.listen, "listen", "`HOST:PORT` to listen on; port 0 is any free one (default 127.0.0.1:1883, with CMD 127.0.0.1:0)")
	fs.Var(&f.cert, "listen-cert", "PEM `FILE` with the server's certificate and those up to its CA: serves TLS")
	fs.Var(&f.key, "listen-key", "PEM `FILE` with the key of --listen-cert")
	fs.Var(&f.clientCA, "listen-client-ca", "PEM `FILE` with the CA of the certificates that clients must have")
	fs.Var(&f.ws, "ws", "`HOST:PORT` to listen on for WebSockets too, at the path /mqtt")
	fs.Var(&f.users, "users", "`FILE` of the users who may connect: lines of NAME:PASSWORD, the password plain or as bcrypt writes it")
	fs.Var(&f.tokens, "sat-tokens", "`FILE` of the service-account tokens with which clients may connect: one a line")
	fs.StringVar(&f.skew, "skew", "0s", "`DURATION` that the store's clock is ahead; may be negative")
	fs.StringVar(&f.latency, "latency", "0s", "`DURATION` that a request waits before it is processed")
	fs.IntVar(&f.maxKeys, "max-keys", 0, "quota of `N` keys (0: none)")
	fs.Uint32Var(&f.maxPacket, "max-packet-size", 0, "Maximum Packet Size in `BYTES` (0: none)")
	fs.BoolVar(&f.attach, "attach", false, "serve the store on the broker that the connection flags name")
	return cmd
}

func (f serveFlags) options() (emulator.Options, error) {
	o := emulator.Options{Listen: string(f.listen), WebSocket: string(f.ws), MaxKeys: f.maxKeys, MaxPacketSize: f.maxPacket}
	var err error
	if o.Skew, err = config.ParseDuration(f.skew); err != nil {
		return o, usage("--skew: %v", err)
	}
	if o.Latency, err = config.ParseDuration(f.latency); err != nil || o.Latency < 0 {
		return o, usage("--latency %.32q: want a duration such as 20ms", f.latency)
	}
	if (f.cert == "") != (f.key == "") {
		return o, usage("want --listen-cert and --listen-key together")
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(string(f.cert), string(f.key))
		if err != nil {
			return o, usage("--listen-cert, --listen-key: %w", err)
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if f.clientCA != "" && f.cert == "" {
		return o, usage("--listen-client-ca without TLS: want --listen-cert and --listen-key too")
	}
	if f.clientCA != "" {
		pool, err := readPool(string(f.clientCA))
		if err != nil {
			return o, usage("--listen-client-ca: %w", err)
		}
		o.TLS.ClientCAs, o.TLS.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	if f.users != "" {
		users, err := readUsers(string(f.users))
		if err != nil {
			return o, &usageError{err: fmt.Errorf("--users: %w", err)}
		}
		o.CheckLogin = users.check
	}
	if f.tokens != "" {
		tokens, err := readTokens(string(f.tokens))
		if err != nil {
			return o, usage("--sat-tokens: %w", err)
		}
		o.CheckToken = tokens.check
	}
	return o, nil
}

func (a *app) serve(ctx context.Context, f serveFlags, args []string) (err error) {
	o, err := f.options()
	if err != nil {
		return err
	}
	if o.Listen == "" && len(args) == 0 {
		o.Listen = "127.0.0.1:1883"
	}
	server, err := emulator.New(o)
	if err != nil {
		return &usageError{err: err, hint: "another --listen, such as 127.0.0.1:0 for any free port"}
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if len(args) > 0 {
		code, err := child.Run(child.Command{Args: args, Env: a.servedEnviron(server, string(f.cert))})
		if err != nil || code == 0 {
			return err
		}
		return &exitError{code: code}
	}
	if err := a.emit(format.Serving{URL: server.URL(), Paste: []string{
		"export SSCLI_URL=" + server.URL(),
		"sscli set hello world",
	}}); err != nil {
		return err
	}
	if url := server.WebSocketURL(); url != "" {
		if err := a.emit(format.Serving{URL: url}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// servedEnviron lets a child, and what it runs, find the server.
func (a *app) servedEnviron(server *emulator.Server, cert string) []string {
	host, port, err := net.SplitHostPort(server.Addr().String())
	if err != nil {
		host = server.Addr().String()
	}
	set := map[string]string{
		"SSCLI_URL":            server.URL(),
		"AIO_BROKER_HOSTNAME":  host,
		"AIO_BROKER_TCP_PORT":  port,
		"AIO_MQTT_USE_TLS":     strconv.FormatBool(cert != ""),
		"AIO_MQTT_CLEAN_START": "true",
		"SSCLI_CONTEXT":        config.None,
	}
	if _, said := a.env("SSCLI_CA_FILE"); cert != "" && !said {
		if path, err := filepath.Abs(cert); err == nil {
			set["SSCLI_CA_FILE"], set["AIO_TLS_CA_FILE"] = path, path
		}
	}
	if url := server.WebSocketURL(); url != "" {
		set["SSCLI_WS_URL"] = url
	}
	return environ(set, "SSCLI_HOST", "SSCLI_PORT", "SSCLI_TLS", "SSCLI_EMBEDDED", "SSCLI_PROXY")
}

// environ is the environment of a child: ours with some variables set and some
// left out.
func environ(set map[string]string, drop ...string) []string {
	gone := make(map[string]bool)
	for _, name := range drop {
		gone[name] = true
	}
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if _, replaced := set[name]; !replaced && !gone[name] {
			env = append(env, kv)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

// users are passwords by name, plain or hashed by bcrypt.
type users map[string]string

func readUsers(name string) (users, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	u := make(users)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		user, password, ok := strings.Cut(line, ":")
		if !ok || user == "" {
			return nil, fmt.Errorf("%s: line %d: want NAME:PASSWORD", name, n)
		}
		u[user] = password
	}
	return u, lines.Err()
}

func (u users) check(name string, password []byte) bool {
	want, ok := u[name]
	switch {
	case !ok:
		return false
	case strings.HasPrefix(want, "$2"):
		return bcrypt.CompareHashAndPassword([]byte(want), password) == nil
	}
	return subtle.ConstantTimeCompare([]byte(want), password) == 1
}

// tokens are service-account tokens.
type tokens [][]byte

func readTokens(name string) (tokens, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var t tokens
	for line := range bytes.Lines(text) {
		if token := bytes.TrimSpace(line); len(token) > 0 {
			t = append(t, token)
		}
	}
	if len(t) == 0 {
		return nil, fmt.Errorf("%s holds no token", name)
	}
	return t, nil
}

func (t tokens) check(token []byte) bool {
	return slices.ContainsFunc(t, func(known []byte) bool { return subtle.ConstantTimeCompare(known, token) == 1 })
}
