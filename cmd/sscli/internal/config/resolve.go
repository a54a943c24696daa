package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// Settings are the user's settings. A setting without a value has its zero value.
type Settings struct {
	Context     string   // the name of the context in use; empty = none
	ContextFile string   // the file that holds the context
	Protected   bool     // ask before each write in this context
	Choices     []string // the contexts to choose from; nil = one is in use or none is needed
	Override    Override // the variables that override the chosen context

	Embedded  bool     // use an emulator inside this process in place of a broker
	Address   string   // host:port
	TLS       bool     // use TLS
	Via       *Via     // how to reach Address, whose host is then the broker's name in the cluster; nil = not through kubectl
	WebSocket string   // path of the WebSocket at Address; empty = no WebSocket
	Proxy     *url.URL // may hold a password; nil = no proxy

	ViaCA             string // config map that holds the CA; empty = the default. See [Settings.ClusterCA]
	ViaServiceAccount string // empty = the default. See [Settings.ClusterAccount]

	CAFile          string // PEM file of trusted CAs; empty = the system's CAs
	ServerName      string // name to expect in the broker's certificate; empty = the host name
	CertFile        string // PEM file of the client certificate; set together with KeyFile
	KeyFile         string
	KeyPasswordFile string
	Insecure        bool   // do not verify the broker's certificate
	Username        string // empty if SATFile is set
	PasswordFile    string
	AskPass         bool   // ask for the password; PasswordFile is empty then
	SATFile         string // file of a Kubernetes service-account token
	ClientID        string // the exact MQTT client id
	ClientIDPrefix  string // the prefix of a random client id, if ClientID is empty
	ResponseTopic   string
	HighPriority    bool
	MetricCategory  string // the group in the broker's metrics; empty = the default
	NoPipelining    bool

	Timeout     time.Duration // 0 = the default
	RetryFor    time.Duration // how long to keep trying to connect; 0 = the default
	Output      string        // human, wide, raw, json or template=…; empty = the default
	Color       string        // auto, always or never; empty = auto
	Trace       bool
	TraceFile   string
	TraceFormat string // text or json; empty = text
	Quiet       bool
	Verbose     Level
	Yes         bool // do not ask before any write

	Sources map[string]Source // the source of each value, by the name of its flag
}

// A Source is where the value of a setting comes from: a flag, an environment variable or the key of a
// context. The zero Source is none of them.
type Source struct {
	Flag    string // the name of the flag
	Env     string // the name of the variable
	Context string // the name of the context; empty = the context that `context set` changes
	Key     string // the key in the context
}

// String returns the source for messages: "--url", "SSCLI_URL", "context lab: url" or "the context's url".
// It returns "" for the zero Source.
func (s Source) String() string {
	switch {
	case s.Flag != "":
		return "--" + s.Flag
	case s.Context != "" && s.Key != "":
		return "context " + s.Context + ": " + s.Key
	case s.Context != "":
		return "context " + s.Context
	case s.Key != "":
		return "the context's " + s.Key
	}
	return s.Env
}

// A NoBrokerError means that no flag, variable or context names a broker.
type NoBrokerError struct {
	Contexts []string // the contexts to choose from, sorted
}

func (e *NoBrokerError) Error() string {
	const maxNames = 8
	names := e.Contexts
	switch {
	case len(names) == 0:
		return "no broker is configured"
	case len(names) == 1:
		return "no broker is configured, and the context " + names[0] + " is not chosen"
	case len(names) > maxNames:
		names = append(slices.Clone(names[:maxNames]), "…")
	}
	return "no broker is configured, and none of the contexts is chosen: " + strings.Join(names, ", ")
}

// Advice returns the commands to use one of the contexts, if there are any.
func (e *NoBrokerError) Advice() (hint suggest.Hint, ok bool) {
	if len(e.Contexts) == 0 {
		return nil, false
	}
	return suggest.Try("`sscli context use NAME`, or `-c NAME` with this command").Fill(suggest.Name, e.Contexts[0]), true
}

// Broker returns a *[NoBrokerError] if there is nothing to connect to.
func (s Settings) Broker() error {
	if s.Address == "" && !s.Embedded {
		return &NoBrokerError{s.Choices}
	}
	return nil
}

// An Error means that the value of a setting is invalid.
type Error struct {
	Source Source // zero if Why also says which value it is about
	Why    string // what is wrong with the value
}

func (e *Error) Error() string {
	if e.Source == (Source{}) {
		return e.Why
	}
	return e.Source.String() + ": " + e.Why
}

// Advice returns the next command to type; for most flags it is empty. ok is false if the value
// comes neither from a flag nor from a context.
func (e *Error) Advice() (hint suggest.Hint, ok bool) {
	if e.Source.Flag == "output" {
		return suggest.Try("`sscli help output`"), true
	}
	if e.Source.Context != "" {
		return suggest.Try("`sscli context set NAME`").Fill(suggest.Name, e.Source.Context).Then(" with another --" + e.Source.Key), true
	}
	return nil, e.Source.Flag != ""
}

// A layer holds the values from one source, such as the command line, by the names of their flags.
type layer map[string]given

// A given is a value as the user gave it. The zero given means that there is no value.
type given struct {
	value  string
	source Source
}

func (l layer) has(flags ...string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool { return l[flag] != (given{}) })
}

// Resolve combines the flags with the environment and the contexts. The error is an *[Error], a
// *[MeantError], a *[FileError] or an *[UnknownContextError]. Even with an error, the settings
// that could be read are valid, so that the error can be printed in the requested form. A missing
// broker is not an error: see [Settings.Broker].
//
// Resolve reads the context file only if its content can matter.
func Resolve(fs *pflag.FlagSet, env func(string) (string, bool)) (Settings, error) {
	r := resolver{out: Settings{Sources: make(map[string]Source)}}
	flags, vars, aio := layersOf(fs, env)
	var expandErr error
	for _, l := range []layer{flags, vars, aio} {
		expandErr = cmp.Or(expandErr, l.expand())
	}
	named, chosen := r.context(fs, env, flags, vars)
	r.layers = []layer{flags, named, vars, chosen, aio}
	r.fail(expandErr)
	r.connection(env)
	r.each(func(s setting) bool { return s.scope == scopeRun })
	return r.out, r.err
}

// ResolveRun is like [Resolve], for commands that do not connect. It resolves only the settings for how
// sscli runs, such as the form of output.
func ResolveRun(fs *pflag.FlagSet, env func(string) (string, bool)) (Settings, error) {
	r := resolver{out: Settings{Sources: make(map[string]Source)}}
	flags, vars, _ := layersOf(fs, env)
	r.layers = []layer{flags, vars}
	r.each(func(s setting) bool { return s.scope == scopeRun })
	return r.out, r.err
}

// given returns the flag of a setting, or nil if it was not given.
func (s setting) given(fs *pflag.FlagSet) *pflag.Flag {
	f := fs.Lookup(s.flag)
	if f == nil || !f.Changed {
		return nil
	}
	if _, own := f.Annotations[isOwn]; own {
		return nil
	}
	return f
}

func layersOf(fs *pflag.FlagSet, env func(string) (string, bool)) (flags, vars, aio layer) {
	flags, vars, aio = make(layer), make(layer), make(layer)
	for _, s := range settings() {
		if f := s.given(fs); f != nil {
			flags[s.flag] = given{f.Value.String(), Source{Flag: s.flag}}
		}
		if value, ok := env(s.env); ok && s.env != "" && value != "" {
			vars[s.flag] = given{value, Source{Env: s.env}}
		}
		if value, ok := env(s.aio); ok && s.aio != "" && value != "" {
			aio[s.flag] = given{value, Source{Env: s.aio}}
		}
	}
	return flags, vars, aio
}

// Line returns the settings for one line of a shell: s, changed by the flags on the line. A line
// cannot have connection flags. connection names the first such flag; empty = none. The error is
// an *[Error].
func (s Settings) Line(fs *pflag.FlagSet) (line Settings, connection string, err error) {
	line = s
	line.Sources = maps.Clone(s.Sources)
	for _, set := range settings() {
		f := set.given(fs)
		switch {
		case f == nil:
		case !set.onLine():
			connection = cmp.Or(connection, "--"+set.flag)
		default:
			line.Sources[set.flag] = Source{Flag: set.flag}
			if bad := set.parse(&line, f.Value.String()); bad != nil && err == nil {
				err = &Error{Source{Flag: set.flag}, bad.Error()}
			}
		}
	}
	return line, connection, err
}

// A resolver combines layers into settings.
type resolver struct {
	layers []layer // in order of precedence
	out    Settings
	err    error // the first error
}

func (r *resolver) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *resolver) connection(env func(string) (string, bool)) {
	r.endpoint()
	r.each(setting.inContext)
	r.wantTLS("ca-file")
	r.viaNames("via-ca", "via-service-account")
	r.certificate()
	r.login()
	r.proxy(env)
	if id, ok := env("AIO_MQTT_CLIENT_ID"); ok && r.out.ClientID == "" {
		r.out.ClientIDPrefix = id
	}
}

// find looks for a flag in the first n layers. It returns the first value, and records its source.
func (r *resolver) find(flag string, n int) string {
	for _, l := range r.layers[:n] {
		if v := l[flag]; v != (given{}) {
			r.out.Sources[flag] = v.source
			return v.value
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
		r.bad(flag, fmt.Sprintf("%.32q: must be true or false", value))
	}
	return b
}

// each resolves the settings that the function which selects, except those in a group.
func (r *resolver) each(which func(setting) bool) {
	for _, s := range settings() {
		if s.group != groupAlone || !which(s) {
			continue
		}
		if text := r.all(s.flag); text != "" {
			if err := s.parse(&r.out, text); err != nil {
				wrong := &Error{r.out.Sources[s.flag], err.Error()}
				if noUnit, ok := errors.AsType[*NoUnitError](err); ok && MeantDuration(noUnit.Text) != "" {
					r.fail(&MeantError{wrong, "--" + s.flag, MeantDuration(noUnit.Text)})
				}
				r.fail(wrong)
			}
		}
	}
}

// wantTLS reports an error for a flag on the command line that has no effect without TLS. It ignores a
// variable that has no effect, because the variable may be meant for other connections.
func (r *resolver) wantTLS(flag string) {
	if r.out.Sources[flag].Flag != "" && r.out.Address != "" && !r.out.TLS {
		r.bad(flag, "without TLS: add --tls or mqtts://")
	}
}

// first returns the number, from 1, of the first layer that has one of the flags; 0 = none has.
func (r *resolver) first(flags ...string) int {
	for i, l := range r.layers {
		if l.has(flags...) {
			return i + 1
		}
	}
	return 0
}

// certificate resolves the client certificate. The layer that names the certificate hides the keys
// of later layers, because the key must belong to the certificate.
func (r *resolver) certificate() {
	n := cmp.Or(r.first("cert-file"), len(r.layers))
	o := &r.out
	o.CertFile, o.KeyFile, o.KeyPasswordFile = r.find("cert-file", n), r.find("key-file", n), r.find("key-password-file", n)
	switch {
	case o.CertFile != "" && o.KeyFile == "":
		r.bad("cert-file", "without a key: add --key-file")
	case o.CertFile == "" && o.KeyFile != "":
		r.bad("key-file", "without a certificate: add --cert-file")
	case o.KeyFile == "" && o.KeyPasswordFile != "":
		r.bad("key-password-file", "without a key: add --cert-file and --key-file")
	}
	r.wantTLS("cert-file")
}

// login resolves how the client logs in. If one layer has a token and another a user name, the
// earlier layer applies. If one layer has a password file and another --askpass, the earlier layer
// applies, too.
func (r *resolver) login() {
	user, token := r.first("username", "password-file", "askpass"), r.first("sat-file")
	o := &r.out
	if token > 0 && (user == 0 || token <= user) {
		o.SATFile = r.all("sat-file")
		if token == user {
			from := r.layers[token-1]
			other := cmp.Or(from["username"], from["password-file"], from["askpass"]).source
			r.bad("sat-file", "together with "+other.String()+": expected a token, or a user name and password")
		}
		return
	}
	o.Username = r.all("username")
	ask, file := r.first("askpass"), r.first("password-file")
	if ask > 0 && (file == 0 || ask <= file) {
		o.AskPass = r.flag("askpass", r.all("askpass"))
		if o.AskPass && ask == file {
			r.bad("askpass", "together with "+r.layers[file-1]["password-file"].source.String()+": use only one of them")
		}
	}
	if !o.AskPass {
		o.PasswordFile = r.all("password-file")
	}
	switch {
	case o.Username != "":
	case o.Embedded && o.Sources["password-file"].Flag == "":
		o.PasswordFile = "" // the file is probably for another broker
	case o.PasswordFile != "":
		r.bad("password-file", "without a user name: add --username")
	case o.AskPass:
		r.bad("askpass", "without a user name: add --username")
	}
}
