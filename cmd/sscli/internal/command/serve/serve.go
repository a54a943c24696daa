package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

type serveFlags struct {
	listen                 config.Text
	cert, key, clientCA    config.File
	selfSigned             config.Text
	selfSignedNames        []string
	clientFiles            config.Text
	ws                     config.Text
	wsOrigins              []string
	login                  accounts.Login
	sat                    accounts.Flags
	redis                  redisFlags
	skew, latency, standby usage.Duration
	maxKeys                int
	maxPacket              config.Size
	limits                 limitFlags
	attach                 bool
	control                config.Text
	controlInsecure        bool
	data                   dataFlags
	load                   []string
	log                    app.LogFlags
}

const long = `Run an MQTT 5 broker with a state store, for development and tests. serve prints the
broker's URL when it is ready. The data is lost when serve ends, unless --data names a
file to keep it.

With CMD, run CMD against the broker, with SSCLI_URL and the AIO_ variables set, and exit
with the exit code of CMD. With --ws, SSCLI_WS_URL is the WebSocket URL. Ctrl-C reaches
CMD; Ctrl-Z stops CMD and the server, and fg continues both.

--self-signed DIR makes certificates and serves TLS with them. DIR then has ca.crt for
clients and, for --listen-client-ca DIR/ca.crt, client.crt and client.key. Certificates in
DIR that are still valid are used again. --client-files 0644 lets the clients of other
users read these files and the token.

--users reads lines as htpasswd -nbB NAME PASSWORD prints them. --sat-audience accepts
service-account tokens signed with --sat-key. serve writes such a token to --sat-out, and
replaces it before it expires. With either flag, clients must log in.

--allow USER:METHOD:KEYS adds a rule. METHOD is Read, Write or ReadWrite. KEYS is a
pattern with * ? and [0-9], in which {principal.clientId} and {principal.username} stand
for the client. USER is a name of --users, the common name of a client certificate, the
subject of a token, or * for every client, even without a name. If there are rules, a
request that no rule allows is refused; without rules, every request is allowed.
{principal.clientId} matches only a client id that equals the user name, because anybody
can choose any other id.

--policy FILE takes the rules from a BrokerAuthorization, by which clients may connect,
publish, subscribe, read and write; sscli policy check finds mistakes in it. User names come
from the login, and attributes from --attributes. The rules apply only if clients must log
in, as on the broker. When a file changes, and at SIGHUP, the files are read again, and all
MQTT clients are disconnected. -v says which rule decided.

An address of --listen or --ws that is not loopback requires a login: --users,
--sat-audience, --sat-tokens or --listen-client-ca. --no-login lets anybody in.

--redis lets Redis clients use the same store: strings, transactions, pub/sub and keyspace
notifications (--notify-keyspace-events KEA). With CMD, REDIS_URL is the URL for Redis
clients; without --redis, CMD keeps a REDIS_URL that was set before. A user of --users logs
in with AUTH; an address that is not loopback requires --users or --redis-insecure. With
--attach, --users and TLS are for Redis clients.

With --data FILE, the store survives a restart and a crash: a write is answered when it is
in the file. --persist asked keeps only the keys that were set with --persist, and those
that match a --persist-pattern. --data-check reads a file and reports damage.

` + limitsHelp + `

--load SOURCE sets keys before the first client connects. SOURCE is a file that sscli
export wrote, a directory, a data set or a manifest, as in sscli apply. A key that --data
kept is not changed.

--control lets tests in any language reset the store, let keys expire, move the clock,
inject faults, close connections, load and save keys, and start more stores. curl on its
URL prints what it understands. With CMD, SSCLI_CONTROL_URL is the URL.

With -v, print a line on standard error for each request and its outcome. With -vv, also
print more about each request, and the clients that connect and disconnect. --log-format
json prints JSON.

With --attach, act as the state store of a broker that has none, such as Mosquitto: serve
is then a client that answers the requests of the other clients. If another store answers
there, serve ends with exit code 15. With --standby, it waits until no store has answered
for 10 seconds, or for the time in --standby=TIME, and then serves what --data kept.`

// New returns the command `sscli serve`.
func New(a *app.App) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:         "serve [-- CMD...]",
		Short:       "Run an emulator of the broker and its state store",
		GroupID:     app.GroupFirst,
		Annotations: map[string]string{app.Offline: "", app.LogsResults: "", app.RunsCommand: ""}, // f.serve configures the connection of --attach
		Long:        long,
		Args:        usage.Child,
		Example:     "  sscli serve\n  sscli serve -- make integration-test\n  sscli serve --listen 127.0.0.1:0 --users users.txt --allow 'ann:ReadWrite:colors/*'\n  sscli serve --users users.txt --policy authz.yaml -v\n  sscli serve --self-signed certs --sat-audience aio-internal\n  sscli serve --attach -u mqtt://127.0.0.1:1883\n  sscli serve --redis 127.0.0.1:6379 --notify-keyspace-events KEA",
		RunE:        func(cmd *cobra.Command, args []string) error { return f.serve(cmd, a, args) },
	}
	f.bind(cmd.Flags())
	return cmd
}

// serve checks the flags, and runs the emulator or attaches a store.
func (f *serveFlags) serve(cmd *cobra.Command, a *app.App, args []string) error {
	if !f.attach {
		if f.standby.Given() {
			return fault.Usagef("--standby without --attach: it waits for another store of the broker")
		}
		if err := checkListen(cmd.Flags()); err != nil {
			return err
		}
	}
	if f.data.check != "" {
		if len(args) > 0 || f.attach {
			return fault.Usagef("--data-check together with a command or --attach: it serves nothing")
		}
		a.LogsResults = false
		return checkData(a, f.data)
	}
	a.Signals.Arm()
	if !f.attach {
		return run(cmd.Context(), a, *f, args)
	}
	if err := checkAttach(cmd.Flags(), args, f.redis.listen != ""); err != nil {
		return err
	}
	if err := a.ConfigureConnection(cmd.Context(), cmd.Flags()); err != nil {
		return err
	}
	return attach(cmd.Context(), a, *f)
}

func (f *serveFlags) bind(fs *pflag.FlagSet) {
	fs.Var(&f.listen, "listen", "`HOST:PORT` to listen on; port 0 means any free port (default 127.0.0.1:1883, with TLS 127.0.0.1:8883, with CMD 127.0.0.1:0)")
	fs.Var(&f.selfSigned, "self-signed", "`DIR` with certificates for TLS, which are created if they are missing")
	fs.StringSliceVar(&f.selfSignedNames, "self-signed-names", nil, "`NAMES` of hosts that the certificate of --self-signed must have, separated by commas, such as a service's")
	fs.Var(&f.clientFiles, "client-files", "`MODE` or MODE:GROUP, such as 0640:1000, of the files that clients need: the CA, client certificate and key of --self-signed, and the token")
	fs.Var(&f.cert, "listen-cert", "PEM `FILE` with the server's certificate and its intermediate certificates: serves TLS")
	fs.Var(&f.key, "listen-key", "PEM `FILE` with the key of --listen-cert")
	fs.Var(&f.clientCA, "listen-client-ca", "PEM `FILE` with the CA of the certificates that clients must have")
	fs.Var(&f.ws, "ws", "`HOST:PORT` to listen on for WebSockets too, at the path /mqtt")
	fs.StringArrayVar(&f.wsOrigins, "ws-origin", nil, "`ORIGIN` of web pages that may connect to --ws, such as https://dashboard.example; may be repeated")
	f.login.Bind(fs)
	f.sat.Bind(fs)
	f.redis.bind(fs)
	fs.Var(f.skew.Least(usage.Signed), "skew", "set the store's clock ahead by `DURATION`; may be negative")
	fs.Var(&f.latency, "latency", "process each request only after `DURATION`")
	fs.IntVar(&f.maxKeys, "max-keys", 0, "quota of `N` keys (0: no quota)")
	fs.Var(&f.maxPacket, "max-packet-size", "Maximum Packet Size in `BYTES`, such as 64KiB (0: no limit)")
	f.limits.bind(fs)
	f.data.bind(fs)
	fs.StringArrayVar(&f.load, "load", nil, "set the keys of `SOURCE` before serving: any source of sscli apply; may be repeated")
	fs.Var(&f.control, "control", "`HOST:PORT` of an HTTP port on which tests steer the emulator: its clock, faults, restarts")
	fs.BoolVar(&f.controlInsecure, "control-insecure", false, "allow anybody to steer the store on an address of --control that is not loopback")
	f.log.Bind(fs)
	fs.BoolVar(&f.attach, "attach", false, "serve the store on the broker that the connection flags name")
	fs.Var(f.standby.Least(usage.Positive), "standby", "with --attach: wait while another store serves, and serve when none has answered for `DURATION`")
	fs.Lookup("standby").NoOptDefVal = "10s"
}

func (f serveFlags) options(ctx context.Context, warn func(string)) (emulator.Options, error) {
	o := emulator.Options{Listen: string(f.listen), WebSocket: string(f.ws), Origins: f.wsOrigins, MaxKeys: f.maxKeys, Limits: emulator.Limits{MaxPacketSize: uint32(min(uint64(f.maxPacket), math.MaxUint32))},
		Redis: string(f.redis.listen), RedisNotify: string(f.redis.notify), Skew: f.skew.Duration, Latency: f.latency.Duration}
	var err error
	if o.Data, err = f.data.options(); err != nil {
		return o, err
	}
	if err := f.limits.apply(&o); err != nil {
		return o, err
	}
	if err := f.certificates(ctx, &o, warn); err != nil {
		return o, err
	}
	if err := f.login.Apply(&o, f.sat.Audience != ""); err != nil {
		return o, err
	}
	login := f.hasLogin()
	if err := f.login.CheckListeners(login, f.listen, f.ws); err != nil {
		return o, err
	}
	return o, f.redis.check(login)
}

func (f serveFlags) hasLogin() bool {
	return f.login.Users != "" || f.login.Tokens != "" || f.sat.Audience != "" || f.clientCA != ""
}

// certificates sets the certificate of the server and, with --listen-client-ca, the CA of the clients'
// certificates.
func (f serveFlags) certificates(ctx context.Context, o *emulator.Options, warn func(string)) error {
	if len(f.selfSignedNames) > 0 && f.selfSigned == "" {
		return fault.Usagef("--self-signed-names without --self-signed: the names are for its certificate")
	}
	if f.selfSigned != "" && (f.cert != "" || f.key != "") {
		return fault.Usagef("--self-signed together with --listen-cert and --listen-key: use one or the other")
	}
	if (f.cert == "") != (f.key == "") {
		return fault.Usagef("expected --listen-cert and --listen-key together")
	}
	var pair tls.Certificate
	var err error
	switch {
	case f.selfSigned != "":
		made := certs.SelfSigned{Dir: string(f.selfSigned), Names: append(certs.ServerNames(string(f.listen)), f.selfSignedNames...), Now: time.Now()}
		if pair, err = made.Prepare(ctx); err != nil {
			return fault.Usagef("--self-signed: %w", err)
		}
	case f.cert != "":
		if pair, err = certs.ReadPair(string(f.cert), string(f.key)); err != nil {
			return fault.Usagef("--listen-cert, --listen-key: %w", err)
		}
	case f.clientCA != "":
		return fault.Usagef("--listen-client-ca without TLS: add --self-signed, or --listen-cert and --listen-key")
	default:
		return nil
	}
	if o.TLS, err = certs.ServerTLS(pair, string(f.clientCA), warn); err != nil {
		return fault.Usagef("--listen-client-ca: %w", err)
	}
	return nil
}

// run serves until ctx ends, the server fails or, if args has a command, the command exits.
func run(ctx context.Context, a *app.App, f serveFlags, args []string) (err error) {
	if err := f.sat.Check(f.login.Tokens != "", f.selfSigned != "" || len(args) > 0); err != nil {
		return err
	}
	o, err := f.options(ctx, a.Warn)
	if err != nil {
		return err
	}
	if o.Listen == "" && len(args) == 0 {
		o.Listen = "127.0.0.1:1883"
		if o.TLS != nil {
			o.Listen = "127.0.0.1:8883"
		}
	}
	log, err := f.log.Open(a)
	if err != nil {
		return err
	}
	if log != nil {
		o.Observe, o.Log = log.Observe, a.Logger()
	}
	if o.Load, err = f.seeds(ctx, a); err != nil {
		return err
	}
	tokens, err := f.sat.Open(&o, string(f.selfSigned), len(args) > 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tokens.Close()) }()
	policies, err := f.login.Policies(a, &o, f.hasLogin())
	if err != nil {
		return err
	}
	defer policies.Close()
	o.Limits.MaxBytes = forClients(cmp.Or(o.Limits.MaxBytes, 1<<30))
	server, err := emulator.New(o)
	if err != nil {
		return startError(a, o, err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := tokens.Start(a, server.Now); err != nil {
		return err
	}
	if err := f.shareFiles(tokens.File()); err != nil {
		return fault.Usagef("--client-files: %w", err)
	}
	f.warnExposed(a, tokens.File())
	policies.Watch(server, len(args) == 0)
	steered, control, err := startControl(server, string(f.control), f.login.None || f.controlInsecure, f.opener(o, server))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, control.Close()) }()
	defer boundMemory(o.Limits.MaxBytes, control.stored)()
	ready := serving(a, f, server, tokens.File())
	if len(args) > 0 {
		return runChild(a, server, ready, steered, args)
	}
	if err := announce(a, ready, server.WebSocketURL(), server.RedisURL(), steered); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fault.ServerEnded(context.Cause(ctx))
	case <-server.Done():
		return dataError(server.Err())
	}
}

// opener returns the function that starts more stores with the options of the first one, but in memory. Without an
// address, they listen on other ports of the same host.
func (f serveFlags) opener(o emulator.Options, first *emulator.Server) openStore {
	o.Data, o.WebSocket = emulator.Data{}, ""
	host, _, _ := net.SplitHostPort(first.Addr().String())
	elsewhere := net.JoinHostPort(host, "0")
	return func(listen, redis string) (*emulator.Server, error) {
		o := o
		o.Listen = cmp.Or(listen, elsewhere)
		if redis != "" {
			o.Redis = redis
		} else if o.Redis != "" {
			o.Redis = elsewhere
		}
		login := f.hasLogin()
		if err := f.login.CheckListeners(login, config.Text(o.Listen), ""); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		if err := (redisFlags{listen: config.Text(o.Redis), insecure: f.redis.insecure}).check(login || o.Redis == ""); err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		return emulator.New(o)
	}
}

// startError describes why a server with these options did not start.
func startError(a *app.App, o emulator.Options, err error) error {
	if fault.IsA[*emulator.DataError](err) {
		return dataError(err)
	}
	if rule, ok := errors.AsType[*emulator.RuleError](err); ok {
		return accounts.RuleError(rule)
	}
	if load, ok := errors.AsType[*emulator.LoadError](err); ok {
		if interrupted, ok := errors.AsType[*signals.Interrupted](err); ok {
			return interrupted
		}
		err = fault.Usagef("--load: %w", load.Err)
		if load.Added == 0 || o.Data.File == "" {
			return err
		}
		var refused error
		settle := a.HoldMistakes()
		a.Wrote()
		a.Refuse(&refused, fmt.Errorf("%w; added before, and kept by --data: %s", err, format.Count(load.Added, "key")))
		return settle(refused)
	}
	hint := suggest.Try("another `--listen`, such as 127.0.0.1:0 for any free port")
	if _, portErr := strconv.ParseUint(o.Listen, 10, 16); portErr == nil {
		hint = suggest.Run("--listen", "127.0.0.1:"+o.Listen)
	}
	return &fault.UsageError{Err: err, Hint: hint}
}

// shareFiles sets the mode and the group of the files that clients need, as --client-files says. token is the file of
// --sat-out, which keeps both when it is replaced. The directory of --self-signed can then be searched by the same users.
func (f serveFlags) shareFiles(token string) error {
	if f.clientFiles == "" {
		return nil
	}
	text, group, hasGroup := strings.Cut(string(f.clientFiles), ":")
	mode, err := strconv.ParseUint(text, 8, 9)
	gid := -1
	if hasGroup && err == nil {
		gid, err = strconv.Atoi(group)
	}
	if err != nil || mode&0o400 == 0 {
		return fmt.Errorf("%.32q: expected a mode with 4 for the owner, and perhaps the number of a group, such as 0644 or 0640:1000", f.clientFiles)
	}
	names := []string{token}
	if dir := string(f.selfSigned); dir != "" {
		names = append(names, filepath.Join(dir, "ca.crt"), filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key"), dir)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		mode := os.FileMode(mode)
		if name == string(f.selfSigned) {
			mode |= mode&0o444>>2 | 0o700
		}
		if err := errors.Join(os.Chown(name, -1, gid), os.Chmod(name, mode)); err != nil {
			return err
		}
	}
	return nil
}

// warnExposed prints a warning for each file with secrets that other users may read or write. token is the file
// of --sat-out.
func (f serveFlags) warnExposed(a *app.App, token string) {
	for _, secret := range []struct{ flag, file string }{
		{"--users", string(f.login.Users)}, {"--sat-tokens", string(f.login.Tokens)}, {"--sat-key", string(f.sat.Key)}, {"--sat-out", token}, {"--listen-key", string(f.key)},
	} {
		if secret.flag != "--sat-out" || f.clientFiles == "" {
			accounts.WarnExposed(a, secret.flag, secret.file)
		}
	}
}
