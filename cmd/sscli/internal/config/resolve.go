package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"
)

// Settings are what the user configured. Empty is what nobody said.
type Settings struct {
	// Context names the one that counts, empty = none; ContextFile holds it.
	// Protected is a context whose user wants to be asked before a write.
	Context, ContextFile string
	Protected            bool
	Override             Override

	Embedded bool
	Address  string // host:port
	TLS      bool
	// WebSocket is the path of one at Address; empty = none.
	WebSocket string
	Proxy     *url.URL // with its password; nil = none

	CAFile, ServerName string
	// CertFile and KeyFile are there together or not at all.
	CertFile, KeyFile, KeyPasswordFile string
	Insecure                           bool
	// SATFile is there in place of the user name.
	Username, PasswordFile, SATFile string
	AskPass                         bool   // in place of the password file
	ClientID                        string // exact
	ClientIDPrefix                  string // of a random one
	ResponseTopic                   string
	HighPriority, NoPipelining      bool

	Timeout   time.Duration // 0 = not said
	Output    string
	Color     string
	Trace     bool
	TraceFile string
	Quiet     bool
	Verbose   bool
	Yes       bool // to whatever a protected context would ask

	// Sources says for each flag name who set it: "--port", "SSCLI_PORT",
	// "context lab: port", …
	Sources map[string]string
}

// ErrNoBroker is what Settings.Broker says when nobody named a broker.
var ErrNoBroker = errors.New("no broker is configured")

// Broker tells whether there is something to connect to. The error is
// ErrNoBroker.
func (s Settings) Broker() error {
	if s.Address == "" && !s.Embedded {
		return ErrNoBroker
	}
	return nil
}

// An Error is a setting with a value that it cannot have.
type Error struct {
	Source string // the flag, variable or key of a context that said it
	Why    string
}

func (e *Error) Error() string { return e.Source + ": " + e.Why }

// A layer is one place that settings come from. Its values are by flag name.
type layer struct {
	values  map[string]string
	sources map[string]string
}

func (l *layer) set(flag, value, source string) {
	l.values[flag], l.sources[flag] = value, source
}

// Resolve combines the flags with the environment and the context. An error is an
// *[Error], a *[FileError] or an *[UnknownContextError], and the settings beside it
// are as far as they are known: the form of output, say, in which to tell the user.
// That there is no broker is not an error: not every command wants one.
//
// The file of contexts is read only if it can matter.
func Resolve(fs *pflag.FlagSet, env func(string) (string, bool)) (Settings, error) {
	r := resolver{out: Settings{Sources: make(map[string]string)}}
	flags, vars, aio := layersOf(fs, env)
	spoilt := spread(flags, vars, aio)
	named, chosen := r.context(fs, env, flags, vars)
	for _, l := range []*layer{flags, named, vars, chosen, aio} {
		if l != nil {
			r.layers = append(r.layers, *l)
		}
	}
	r.fail(spoilt)
	r.connection(env)
	r.each(func(s setting) bool { return s.scope == scopeRun })
	return r.out, r.err
}

// ResolveRun combines flags and environment as Resolve does, as far as they are
// about how sscli runs and not about how it connects, for commands that do not.
func ResolveRun(fs *pflag.FlagSet, env func(string) (string, bool)) (Settings, error) {
	r := resolver{out: Settings{Sources: make(map[string]string)}}
	flags, vars, _ := layersOf(fs, env)
	r.layers = []layer{*flags, *vars}
	r.each(func(s setting) bool { return s.scope == scopeRun })
	return r.out, r.err
}

// layersOf returns what the flags and the two kinds of variables say.
func layersOf(fs *pflag.FlagSet, env func(string) (string, bool)) (flags, vars, aio *layer) {
	flags, vars, aio = newLayer(), newLayer(), newLayer()
	for _, s := range settings() {
		if f := fs.Lookup(s.flag); f != nil && f.Changed {
			flags.set(s.flag, f.Value.String(), "--"+s.flag)
		}
		if value, ok := env(s.env); ok && s.env != "" && value != "" {
			vars.set(s.flag, value, s.env)
		}
		if value, ok := env(s.aio); ok && s.aio != "" && value != "" {
			aio.set(s.flag, value, s.aio)
		}
	}
	return flags, vars, aio
}

func newLayer() *layer { return &layer{make(map[string]string), make(map[string]string)} }

// Line returns the settings of one line of a shell, from the flags on that line.
// Those that are about the connection are the shell's; if there are any, connection
// names the first of them. The error is an *[Error].
func (s Settings) Line(fs *pflag.FlagSet) (line Settings, connection string, err error) {
	l := layer{make(map[string]string), make(map[string]string)}
	line = s
	line.Sources = maps.Clone(s.Sources)
	for _, set := range settings() {
		f := fs.Lookup(set.flag)
		switch {
		case f == nil || !f.Changed:
		case set.onLine():
			l.set(set.flag, f.Value.String(), "--"+set.flag)
		case connection == "":
			connection = "--" + set.flag
		}
	}
	r := resolver{layers: []layer{l}, out: Settings{Sources: line.Sources}}
	r.each(setting.onLine)
	for _, set := range settings() {
		if _, said := l.values[set.flag]; said {
			set.copy(&line, &r.out)
		}
	}
	return line, connection, r.err
}

// spread replaces a layer's url by the settings that it stands for.
func (l *layer) spread() error {
	if off, ok := l.values["no-tls"]; ok {
		if _, both := l.values["tls"]; both {
			return &Error{l.sources["no-tls"], "together with " + l.sources["tls"] + ": want one of them"}
		}
		l.set("tls", strconv.FormatBool(off != "true"), l.sources["no-tls"])
	}
	text, ok := l.values["url"]
	if !ok {
		return nil
	}
	source := l.sources["url"]
	for _, other := range []string{"host", "port", "tls"} {
		if _, both := l.values[other]; both {
			return &Error{source, "together with " + l.sources[other] + ": the URL says that already"}
		}
	}
	u, err := parseURL(text)
	if err != nil {
		return &Error{source, err.Error()}
	}
	l.set("host", u.host, source)
	l.set("port", u.port, source)
	l.set("tls", strconv.FormatBool(u.tls), source)
	l.set(webSocketPath, u.path, source)
	if _, both := l.values["username"]; u.user != "" && !both {
		l.set("username", u.user, source)
	}
	return nil
}

// webSocketPath is what a URL says that no flag does.
const webSocketPath = "websocket path"

type brokerURL struct {
	host, port, user string
	tls              bool
	path             string // of a WebSocket, with its query; empty = none
}

func parseURL(text string) (brokerURL, error) {
	u, err := url.Parse(text)
	if err != nil {
		// The error of net/url repeats the URL, and with it a password.
		return brokerURL{}, errors.New("not a URL: want mqtt://host:port or mqtts://host:port")
	}
	if _, ok := u.User.Password(); ok {
		return brokerURL{}, errors.New("a password in a URL is seen by everybody: want --password-file")
	}
	var b brokerURL
	switch strings.ToLower(u.Scheme) {
	case "mqtt":
		b.port = "1883"
	case "mqtts":
		b.port, b.tls = "8883", true
	case "ws":
		b.port, b.path = "80", "/mqtt"
	case "wss":
		b.port, b.path, b.tls = "443", "/mqtt", true
	default:
		return brokerURL{}, fmt.Errorf("scheme %q: want mqtt://, mqtts://, ws:// or wss://", u.Scheme)
	}
	if u.Hostname() == "" {
		return brokerURL{}, errors.New("no host: want mqtt://host:port or mqtts://host:port")
	}
	if b.path != "" && u.Fragment != "" {
		return brokerURL{}, errors.New("a fragment (#…) is not sent to anybody: want ws://host:port/path")
	}
	if b.path != "" {
		if u.Path != "" || u.RawQuery != "" {
			b.path = u.RequestURI()
		}
	} else if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return brokerURL{}, errors.New("something stands behind the host: want mqtt://host:port or mqtts://host:port")
	}
	if p := u.Port(); p != "" {
		b.port = p
	}
	b.host, b.user = u.Hostname(), u.User.Username()
	return b, nil
}

type resolver struct {
	layers []layer
	out    Settings
	err    error // the first
}

func (r *resolver) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// spread spreads the layers and returns the first error.
func spread(layers ...*layer) (first error) {
	for _, l := range layers {
		if err := l.spread(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// connection decides everything about the connection.
func (r *resolver) connection(env func(string) (string, bool)) {
	r.endpoint()
	r.each(setting.inContext)
	r.wantTLS("ca-file")
	r.certificate()
	r.login()
	r.proxy(env)
	if id, ok := env("AIO_MQTT_CLIENT_ID"); ok && r.out.ClientID == "" {
		r.out.ClientIDPrefix = id
	}
}

// find returns the value of the first of n layers that has one.
func (r *resolver) find(flag string, n int) string {
	for _, l := range r.layers[:n] {
		if v, ok := l.values[flag]; ok {
			r.out.Sources[flag] = l.sources[flag]
			return v
		}
	}
	return ""
}

func (r *resolver) all(flag string) string { return r.find(flag, len(r.layers)) }

func (r *resolver) bad(flag, why string) {
	r.fail(&Error{r.out.Sources[flag], why})
}

func (r *resolver) flag(flag, value string) bool {
	if value == "" {
		return false
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		r.bad(flag, fmt.Sprintf("%.32q: want true or false", value))
	}
	return b
}

// endpoint decides where to connect to: the first layer that names a host, or
// asks for the embedded emulator, decides, and only it and those before it say
// the rest.
func (r *resolver) endpoint() {
	n := 0
	denied := false // somebody said --embedded=false, so that later layers cannot ask for it
	for i, l := range r.layers {
		_, host := l.values["host"]
		embedded := false
		if v, said := l.values["embedded"]; said && !denied {
			r.out.Sources["embedded"] = l.sources["embedded"]
			embedded = r.flag("embedded", v)
			denied = !embedded
		}
		if host && embedded {
			r.bad("embedded", "together with "+l.sources["host"]+": want one of them")
		}
		if embedded {
			r.out.Embedded = true
			return
		}
		if host {
			n = i + 1
			break
		}
	}
	if n == 0 {
		return
	}
	host := r.find("host", n)
	r.out.TLS = true
	if v := r.find("tls", n); v != "" {
		r.out.TLS = r.flag("tls", v)
	}
	port := r.find("port", n)
	switch {
	case port == "" && r.out.TLS:
		port = "8883"
	case port == "":
		port = "1883"
	}
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		r.bad("port", fmt.Sprintf("%.32q: want a port of 1 to 65535", port))
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if why := checkHost(host); why != "" {
		r.bad("host", why)
	}
	r.out.Address = net.JoinHostPort(host, port)
	r.out.WebSocket = r.layers[n-1].values[webSocketPath]
}

// checkHost tells what is wrong with a host's name or address.
func checkHost(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	if host == "" {
		return "no host: want a host name or an address"
	}
	if strings.Count(host, ":") == 1 {
		return fmt.Sprintf("%.80q: want a host without a port, which is --port or SSCLI_PORT", host)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" \"/:?#@[]\\", r) }) {
		return fmt.Sprintf("%.80q: want a host name or an address", host)
	}
	return ""
}

// each decides every setting that is decided alone and that which reports.
func (r *resolver) each(which func(setting) bool) {
	for _, s := range settings() {
		if s.group != groupAlone || !which(s) {
			continue
		}
		if text := r.all(s.flag); text != "" {
			if err := s.parse(&r.out, text); err != nil {
				r.bad(s.flag, err.Error())
			}
		}
	}
}

// wantTLS refuses a flag that means nothing without TLS. A variable is for all
// connections, and waits for one with TLS.
func (r *resolver) wantTLS(flag string) {
	if r.out.Sources[flag] == "--"+flag && r.out.Address != "" && !r.out.TLS {
		r.bad(flag, "without TLS: want --tls or mqtts://")
	}
}

// first returns how many layers there are up to the first that says one of these,
// 0 if none does.
func (r *resolver) first(flags ...string) int {
	for i, l := range r.layers {
		for _, flag := range flags {
			if _, ok := l.values[flag]; ok {
				return i + 1
			}
		}
	}
	return 0
}

// certificate decides about the client's certificate. Its key belongs to it, so
// whoever names the certificate voids the keys of those after him.
func (r *resolver) certificate() {
	n := r.first("cert-file")
	if n == 0 {
		n = len(r.layers)
	}
	o := &r.out
	o.CertFile, o.KeyFile, o.KeyPasswordFile = r.find("cert-file", n), r.find("key-file", n), r.find("key-password-file", n)
	switch {
	case o.CertFile != "" && o.KeyFile == "":
		r.bad("cert-file", "without a key: want --key-file too")
	case o.CertFile == "" && o.KeyFile != "":
		r.bad("key-file", "without a certificate: want --cert-file too")
	case o.KeyFile == "" && o.KeyPasswordFile != "":
		r.bad("key-password-file", "without a key: want --cert-file and --key-file too")
	}
	r.wantTLS("cert-file")
}

// login decides who the client says it is. There is one answer, so a token of one
// layer and a user name of another exclude each other by precedence, and so do a
// password file and a question for the password.
func (r *resolver) login() {
	user, token := r.first("username", "password-file", "askpass"), r.first("sat-file")
	o := &r.out
	if token > 0 && (user == 0 || token <= user) {
		o.SATFile = r.all("sat-file")
		if token == user {
			l := r.layers[token-1]
			other := l.sources["username"]
			for _, flag := range []string{"password-file", "askpass"} {
				if other == "" {
					other = l.sources[flag]
				}
			}
			r.bad("sat-file", "together with "+other+": want a token, or a user name and password")
		}
		return
	}
	o.Username = r.all("username")
	ask, file := r.first("askpass"), r.first("password-file")
	if ask > 0 && (file == 0 || ask <= file) {
		o.AskPass = r.flag("askpass", r.all("askpass"))
		if o.AskPass && ask == file {
			r.bad("askpass", "together with "+r.layers[file-1].sources["password-file"]+": want one of them")
		}
	}
	if !o.AskPass {
		o.PasswordFile = r.all("password-file")
	}
	switch {
	case o.Username != "":
	case o.PasswordFile != "":
		r.bad("password-file", "without a user name: want --username too")
	case o.AskPass:
		r.bad("askpass", "without a user name: want --username too")
	}
}

// ParseDuration reads a duration as users write it: with a unit, or a bare
// number of seconds.
func ParseDuration(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second)), nil
	}
	return 0, fmt.Errorf("%.32q: want a duration such as 500ms, 10s or 2m", text)
}

// URL names the broker, without the user.
func (s Settings) URL() string {
	u := url.URL{Scheme: "mqtt", Host: s.Address}
	if s.WebSocket != "" {
		u.Scheme = "ws"
	}
	switch {
	case s.TLS && s.WebSocket != "":
		u.Scheme = "wss"
	case s.TLS:
		u.Scheme = "mqtts"
	}
	path, _, _ := strings.Cut(s.WebSocket, "?") // a query may hold a secret
	return u.String() + path
}
