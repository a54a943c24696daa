package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
)

// A setting is a row of the table of settings. The table defines the flags, their help and
// completion, the variables, the keys of contexts, the lines of `context show`, and the environment
// of a child process.
type setting struct {
	flag, short string // flag is also the key in a context
	value       string // the name of the value in help; empty = a switch
	usage       string
	heading     string // the heading in help above this setting; empty = none
	env, aio    string // the SSCLI_ and AIO_ variables; empty = none
	scope       scope
	group       group
	words       []string // the possible values; a word that ends in = is a prefix

	// into returns a pointer to the field that holds the value: a *string, *bool, *Level,
	// *time.Duration, **url.URL or **Via. It is nil if the value becomes part of another field.
	// `context show` leaves out a zero value.
	into func(*Settings) any

	replaces []string // the flags that `context set` removes when it sets this one
	child    inheritance
}

// A scope is what a setting affects, which determines where the setting is allowed.
type scope int

const (
	scopeConnection scope = iota // the connection: allowed in a context, not on a line of a shell
	scopeRequest                 // each request: allowed in a context and on a line
	scopeRun                     // how sscli runs: allowed on a line, not in a context
	scopeContext                 // which context to use: not allowed in a context or on a line
)

// A group is a set of settings that are resolved together.
type group int

const (
	groupAlone       group = iota
	groupEndpoint          // see resolver.endpoint
	groupCertificate       // see resolver.certificate
	groupLogin             // see resolver.login
	groupProxy             // see resolver.proxy
	groupContexts          // see resolver.context
)

// An inheritance determines how a child process inherits a setting.
type inheritance int

const (
	leave inheritance = iota // the child's environment keeps the SSCLI_ variable as it is, unless a context has the value
	pass                     // the variable is set to the effective value
	drop                     // the variable is removed: another variable includes the value, or the child must not have it
)

func (s setting) isFile() bool { return s.value == FileValue }

func (s setting) isSwitch() bool { return s.value == "" }

// counts reports whether the value is the number of times that the flag was given. zero may be any
// Settings, and is not changed.
func (s setting) counts(zero *Settings) bool {
	if s.into == nil {
		return false
	}
	_, ok := s.into(zero).(*Level)
	return ok
}

func (s setting) inContext() bool { return s.scope == scopeConnection || s.scope == scopeRequest }

// onLine reports whether a line of a shell can have the flag.
func (s setting) onLine() bool { return s.scope == scopeRequest || s.scope == scopeRun }

// parse parses a value and stores it in out. The error says what was expected.
func (s setting) parse(out *Settings, text string) error {
	if len(s.words) > 0 && s.words[len(s.words)-1] != "template=" && !slices.Contains(s.words, text) {
		return fmt.Errorf("%.32q: expected %s", text, format.List(s.words, "or"))
	}
	switch p := s.into(out).(type) {
	case *string:
		*p = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%.32q: must be true or false", text)
		}
		*p = b
	case *Level:
		return p.Set(text)
	case *time.Duration:
		d, err := ParseDuration(text)
		if err == nil && d <= 0 {
			err = fmt.Errorf("%.32q: must be greater than 0", text)
		}
		*p = d
		return err
	}
	return nil
}

// show returns the value as `context show` prints it, without secrets. It is empty for the zero
// value.
func (s setting) show(from *Settings) string {
	if s.into == nil {
		return ""
	}
	switch p := s.into(from).(type) {
	case *string:
		return *p
	case *bool:
		if *p {
			return "true"
		}
	case *Level:
		if *p > 0 {
			return p.String()
		}
	case *time.Duration:
		if *p != 0 {
			return p.String()
		}
	case **url.URL:
		if *p != nil {
			return (*p).Redacted()
		}
	case **Via:
		if *p != nil {
			return (*p).String()
		}
	}
	return ""
}

// settings returns the table, in the order of help and `context show`. The slice is shared: do not
// change it.
func settings() []setting { return table[:] }

// table is an array that the compiler initializes, so that it costs no time at start-up.
var table = [...]setting{
	{heading: "The broker:", flag: "context", short: "c", value: "NAME", usage: "named connection to use, or none", env: "SSCLI_CONTEXT",
		scope: scopeContext, group: groupContexts, into: func(s *Settings) any { return &s.Context }},
	{flag: "config", value: FileValue, usage: "file of the named connections", env: "SSCLI_CONFIG",
		scope: scopeContext, group: groupContexts},
	{flag: "url", short: "u", value: "URL", usage: "broker: mqtt://[user@]host[:port], or mqtts, ws, wss", env: "SSCLI_URL",
		group: groupEndpoint, replaces: []string{"host", "port", "tls", "no-tls", "embedded", "via"}, child: pass},
	{flag: "host", short: "H", value: "HOST", usage: "broker's host name or address", env: "SSCLI_HOST", aio: "AIO_BROKER_HOSTNAME",
		group: groupEndpoint, replaces: []string{"url", "embedded", "via"}, child: drop},
	{flag: "port", short: "p", value: "PORT", usage: "broker's port (8883 with TLS, else 1883)", env: "SSCLI_PORT", aio: "AIO_BROKER_TCP_PORT",
		group: groupEndpoint, child: drop},
	{flag: "tls", usage: "use TLS (the default with --host)", env: "SSCLI_TLS", aio: "AIO_MQTT_USE_TLS",
		group: groupEndpoint, replaces: []string{"no-tls"}, child: drop},
	{flag: "no-tls", usage: "do not use TLS",
		group: groupEndpoint, replaces: []string{"tls"}},
	{flag: "embedded", usage: "use an emulator inside this process in place of a broker", env: "SSCLI_EMBEDDED",
		group: groupEndpoint, into: func(s *Settings) any { return &s.Embedded }, replaces: []string{"url", "host", "port", "tls", "no-tls", "via"}, child: drop},
	{heading: "A broker in a cluster:", flag: "via", value: "WAY", usage: "connect through kubectl port-forward: " + viaForm, env: "SSCLI_VIA",
		group: groupEndpoint, into: func(s *Settings) any { return &s.Via }, replaces: []string{"url", "host", "port", "embedded"}, child: pass},
	{flag: "via-ca", value: "NAME", usage: "config map with the broker's CA (default " + defaultViaCA + ")", env: "SSCLI_VIA_CA",
		into: func(s *Settings) any { return &s.ViaCA }, child: pass},
	{flag: "via-service-account", value: "NAME", usage: "service account to log in as (default " + defaultViaAccount + ")", env: "SSCLI_VIA_SERVICE_ACCOUNT",
		into: func(s *Settings) any { return &s.ViaServiceAccount }, child: pass},
	{heading: "TLS and certificates:", flag: "ca-file", value: FileValue, usage: "PEM file of the CAs to trust, in place of the system's", env: "SSCLI_CA_FILE", aio: "AIO_TLS_CA_FILE",
		into: func(s *Settings) any { return &s.CAFile }, child: pass},
	{flag: "cert-file", value: FileValue, usage: "PEM file of the client certificate, with any intermediate certificates", env: "SSCLI_CERT_FILE", aio: "AIO_TLS_CERT_FILE",
		group: groupCertificate, into: func(s *Settings) any { return &s.CertFile }, child: pass},
	{flag: "key-file", value: FileValue, usage: "PEM file of the key of --cert-file", env: "SSCLI_KEY_FILE", aio: "AIO_TLS_KEY_FILE",
		group: groupCertificate, into: func(s *Settings) any { return &s.KeyFile }, child: pass},
	{flag: "key-password-file", value: FileValue, usage: "file that holds the password of --key-file", env: "SSCLI_KEY_PASSWORD_FILE", aio: "AIO_TLS_KEY_PASSWORD_FILE",
		group: groupCertificate, into: func(s *Settings) any { return &s.KeyPasswordFile }, child: pass},
	{flag: "tls-server-name", value: "NAME", usage: "name to expect in the broker's certificate", env: "SSCLI_TLS_SERVER_NAME",
		into: func(s *Settings) any { return &s.ServerName }, child: pass},
	{flag: "tls-insecure", usage: "do not verify the broker's certificate (warns every time)",
		into: func(s *Settings) any { return &s.Insecure }},
	{heading: "The login:", flag: "username", value: "NAME", usage: "user name", env: "SSCLI_USERNAME", aio: "AIO_MQTT_USERNAME",
		group: groupLogin, into: func(s *Settings) any { return &s.Username }, replaces: []string{"sat-file"}, child: pass},
	{flag: "password-file", value: FileValue, usage: "file that holds the password", env: "SSCLI_PASSWORD_FILE", aio: "AIO_MQTT_PASSWORD_FILE",
		group: groupLogin, into: func(s *Settings) any { return &s.PasswordFile }, replaces: []string{"sat-file", "askpass"}, child: pass},
	{flag: "askpass", usage: "ask for the password on the terminal",
		group: groupLogin, into: func(s *Settings) any { return &s.AskPass }, replaces: []string{"sat-file", "password-file"}},
	{flag: "sat-file", value: FileValue, usage: "file that holds a Kubernetes service-account token, in place of a user name", env: "SSCLI_SAT_FILE", aio: "AIO_SAT_FILE",
		group: groupLogin, into: func(s *Settings) any { return &s.SATFile }, replaces: []string{"username", "password-file", "askpass"}, child: pass},
	{heading: "The connection:", flag: "proxy", value: "URL", usage: "proxy to connect through: socks5://[user@]host[:port], http://… or https://…", env: "SSCLI_PROXY",
		group: groupProxy, into: func(s *Settings) any { return &s.Proxy }},
	{flag: "client-id", short: "i", value: "ID", usage: "MQTT client id (default: sscli- and random characters)", env: "SSCLI_CLIENT_ID",
		into: func(s *Settings) any { return &s.ClientID }, child: drop},
	{flag: "response-topic", value: "TOPIC", usage: "topic to receive replies on", env: "SSCLI_RESPONSE_TOPIC",
		into: func(s *Settings) any { return &s.ResponseTopic }, child: pass},
	{flag: "high-priority", usage: "mark requests as high priority, for when the broker is overloaded", env: "SSCLI_HIGH_PRIORITY",
		into: func(s *Settings) any { return &s.HighPriority }, child: pass},
	{flag: "metric-category", value: "NAME", usage: "group in which the broker's metrics count this client (default sscli)", env: "SSCLI_METRIC_CATEGORY",
		into: func(s *Settings) any { return &s.MetricCategory }, child: pass},
	{flag: "no-pipelining", usage: "wait for each reply before the next packet: CONNECT, SUBSCRIBE, the request", env: "SSCLI_NO_PIPELINING",
		into: func(s *Settings) any { return &s.NoPipelining }, child: pass},
	{flag: "timeout", short: "t", value: "DURATION", usage: "time limit for connecting and the request (default 10s)", env: "SSCLI_TIMEOUT",
		scope: scopeRequest, into: func(s *Settings) any { return &s.Timeout }},
	{flag: "retry-for", value: "DURATION", usage: "how long to retry if the broker cannot be reached (default: no retry)", env: "SSCLI_RETRY_FOR",
		scope: scopeRequest, into: func(s *Settings) any { return &s.RetryFor }},
	{heading: "The output:", flag: "output", short: "o", value: "FORM", usage: "human (terminal), raw (elsewhere), wide, json or template=…", env: "SSCLI_OUTPUT",
		scope: scopeRun, words: format.Forms(), into: func(s *Settings) any { return &s.Output }},
	{flag: "color", value: "WHEN", usage: "auto, always or never (default auto)", env: "SSCLI_COLOR",
		scope: scopeRun, words: []string{"auto", "always", "never"}, into: func(s *Settings) any { return &s.Color }},
	{flag: "trace", usage: "print every packet to stderr", env: "SSCLI_TRACE",
		scope: scopeRun, into: func(s *Settings) any { return &s.Trace }},
	{flag: "trace-file", value: FileValue, usage: "append every packet to FILE", env: "SSCLI_TRACE_FILE",
		scope: scopeRun, into: func(s *Settings) any { return &s.TraceFile }},
	{flag: "trace-format", value: "FORM", usage: "text, or json with an object a packet (default text)", env: "SSCLI_TRACE_FORMAT",
		scope: scopeRun, words: []string{"text", "json"}, into: func(s *Settings) any { return &s.TraceFormat }},
	{flag: "quiet", short: "q", usage: "print no warnings, notices or summaries",
		scope: scopeRun, into: func(s *Settings) any { return &s.Quiet }},
	{flag: "verbose", short: "v", usage: "also warn about harmless deviations; serve and gateway log requests (-vv: more)",
		scope: scopeRun, into: func(s *Settings) any { return &s.Verbose }},
	{flag: "yes", usage: "confirm in advance: writes in a protected context, del --match, apply --prune, lock break",
		scope: scopeRun, into: func(s *Settings) any { return &s.Yes }},
}

func findSetting(flag string) (setting, bool) {
	for i := range table { // by index, because a file of 1,000 contexts would copy millions of rows
		if table[i].flag == flag && table[i].inContext() {
			return table[i], true
		}
	}
	return setting{}, false
}

func flagsOf(which func(setting) bool) []string {
	var flags []string
	for _, s := range settings() {
		if which(s) {
			flags = append(flags, s.flag)
		}
	}
	return flags
}

func keys() []string { return append(flagsOf(setting.inContext), "protected") }

// didYouMean returns " (did you mean …?)" with the names that are similar to name, or "".
func didYouMean(name string, names []string) string {
	if found := suggest.Near(strings.ReplaceAll(name, "_", "-"), names); len(found) > 0 {
		return " (did you mean " + strings.Join(found, " or ") + "?)"
	}
	return ""
}

// An Effective is a setting with its effective value.
type Effective struct {
	Flag, Value string
	Source      string // for people: the flag, the variable, "context lab", "chosen" (in the context file) or "default"
	File        string // the context file, if the value comes from a context; else empty
}

// Effective returns the settings that differ from their defaults, in the order of help, without
// secrets.
func (s Settings) Effective() []Effective {
	var out []Effective
	from := func(flag string) Source { // without the key of a context
		source := s.Sources[flag]
		source.Key = ""
		return source
	}
	add := func(flag, value string, source Source) {
		e := Effective{Flag: flag, Value: value, Source: cmp.Or(source.String(), "default")}
		switch {
		case source.Context != "":
			e.File = s.ContextFile
		case flag == "context" && source == (Source{}):
			e.Source = "chosen" // in the context file
		}
		out = append(out, e)
	}
	for _, row := range settings() {
		if value := row.show(&s); value != "" && row.flag != "yes" {
			add(row.flag, value, from(row.flag))
		}
		switch {
		case row.flag == "config" && s.Protected:
			add("protected", "true", Source{Context: s.Context})
		case row.flag == "url" && s.Address != "" && s.Via == nil:
			add("url", s.URL(), from("host"))
		case row.flag == "tls" && s.Via != nil && !s.TLS:
			add("tls", "false", from("tls"))
		case (row.flag == "port" || row.flag == "tls") && s.Address != "" && from(row.flag) != from("host"):
			// The entry for url does not show the source of a port or TLS setting that comes from
			// elsewhere.
			value := strconv.FormatBool(s.TLS)
			if row.flag == "port" {
				_, value, _ = net.SplitHostPort(s.Address)
			}
			add(row.flag, value, from(row.flag))
		case row.flag == "client-id" && s.ClientIDPrefix != "":
			add("client-id", s.ClientIDPrefix+"- and random characters", Source{Env: "AIO_MQTT_CLIENT_ID"})
		}
	}
	return out
}
