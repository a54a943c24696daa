package config

import (
	"errors"

	"github.com/spf13/pflag"
)

// A Text is the value of a flag that is no switch. It is not empty: whoever writes
// --fence "$TOKEN" and has no token must not end up without a fence.
type Text string

// Set makes it a [pflag.Value].
func (t *Text) Set(text string) error {
	if text == "" {
		return errors.New("want something")
	}
	*t = Text(text)
	return nil
}

func (t *Text) String() string { return string(*t) }

// Type is what help calls the value.
func (t *Text) Type() string { return "string" }

// named is a Text with a name in help.
type named struct {
	Text
	name string
}

func (n *named) Type() string { return n.name }

// A setting is a flag with the environment variables that stand in for it.
type setting struct {
	flag, short string
	value       string // what help calls the value; empty for a switch
	usage       string
	env, aio    string // SSCLI_ and AIO_ variable, empty if there is none
	perRun      bool   // says how sscli runs, not how it connects: no key of a context
}

// isFile tells whether the value names a file.
func (s setting) isFile() bool { return s.value == "FILE" }

// onLine tells whether a line of a shell may have it; the others are about the
// connection.
func (s setting) onLine() bool {
	switch s.flag {
	case "context", "config":
		return false
	case "timeout":
		return true
	}
	return s.perRun
}

// isSwitch tells whether the value is true or false.
func (s setting) isSwitch() bool { return s.value == "" }

func settings() []setting {
	return []setting{
		{flag: "context", short: "c", value: "NAME", usage: "named connection to use; none for no context", env: "SSCLI_CONTEXT", perRun: true},
		{flag: "config", value: "FILE", usage: "file of the named connections", env: "SSCLI_CONFIG", perRun: true},
		{flag: "url", short: "u", value: "URL", usage: "broker: mqtt://[user@]host[:port], mqtts://…, or a WebSocket: ws://…[/path], wss://… (path: /mqtt)", env: "SSCLI_URL"},
		{flag: "host", short: "H", value: "HOST", usage: "broker's host name or address", env: "SSCLI_HOST", aio: "AIO_BROKER_HOSTNAME"},
		{flag: "port", short: "p", value: "PORT", usage: "broker's port (8883 with TLS, else 1883)", env: "SSCLI_PORT", aio: "AIO_BROKER_TCP_PORT"},
		{flag: "tls", usage: "use TLS (the default with --host)", env: "SSCLI_TLS", aio: "AIO_MQTT_USE_TLS"},
		{flag: "no-tls", usage: "do not use TLS"},
		{flag: "ca-file", value: "FILE", usage: "PEM certificates that the broker's must lead to, in place of the system's", env: "SSCLI_CA_FILE", aio: "AIO_TLS_CA_FILE"},
		{flag: "cert-file", value: "FILE", usage: "PEM client certificate, and those up to its CA", env: "SSCLI_CERT_FILE", aio: "AIO_TLS_CERT_FILE"},
		{flag: "key-file", value: "FILE", usage: "PEM key of --cert-file", env: "SSCLI_KEY_FILE", aio: "AIO_TLS_KEY_FILE"},
		{flag: "key-password-file", value: "FILE", usage: "file that holds the password of --key-file", env: "SSCLI_KEY_PASSWORD_FILE", aio: "AIO_TLS_KEY_PASSWORD_FILE"},
		{flag: "tls-server-name", value: "NAME", usage: "name to expect in the broker's certificate", env: "SSCLI_TLS_SERVER_NAME"},
		{flag: "tls-insecure", usage: "do not verify the broker's certificate (warns every time)"},
		{flag: "username", value: "NAME", usage: "user name", env: "SSCLI_USERNAME", aio: "AIO_MQTT_USERNAME"},
		{flag: "password-file", value: "FILE", usage: "file that holds the password", env: "SSCLI_PASSWORD_FILE", aio: "AIO_MQTT_PASSWORD_FILE"},
		{flag: "askpass", usage: "ask for the password on the terminal"},
		{flag: "sat-file", value: "FILE", usage: "file that holds a Kubernetes service-account token, in place of a user name", env: "SSCLI_SAT_FILE", aio: "AIO_SAT_FILE"},
		{flag: "proxy", value: "URL", usage: "way to the broker: socks5://[user@]host[:port], http://… or https://…", env: "SSCLI_PROXY"},
		{flag: "client-id", short: "i", value: "ID", usage: "MQTT client id (default: sscli- and random characters)", env: "SSCLI_CLIENT_ID"},
		{flag: "response-topic", value: "TOPIC", usage: "topic on which to ask for replies", env: "SSCLI_RESPONSE_TOPIC"},
		{flag: "high-priority", usage: "mark requests to pass when the broker pushes back", env: "SSCLI_HIGH_PRIORITY"},
		{flag: "no-pipelining", usage: "send one packet after the other: CONNECT, SUBSCRIBE, the request", env: "SSCLI_NO_PIPELINING"},
		{flag: "embedded", usage: "use an emulator inside this process in place of a broker", env: "SSCLI_EMBEDDED"},
		{flag: "timeout", short: "t", value: "DURATION", usage: "budget for connecting and the request; in batch for each request (default 10s)", env: "SSCLI_TIMEOUT"},
		{flag: "output", short: "o", value: "FORM", usage: "human, raw, json or template=… (default: human on a terminal, else raw)", env: "SSCLI_OUTPUT", perRun: true},
		{flag: "color", value: "WHEN", usage: "auto, always or never (default auto)", env: "SSCLI_COLOR", perRun: true},
		{flag: "trace", usage: "print every packet to stderr", env: "SSCLI_TRACE", perRun: true},
		{flag: "trace-file", value: "FILE", usage: "append every packet to FILE", env: "SSCLI_TRACE_FILE", perRun: true},
		{flag: "quiet", short: "q", usage: "no warnings", perRun: true},
		{flag: "verbose", short: "v", usage: "also tell of harmless departures from the protocol", perRun: true},
		{flag: "yes", usage: "write with a protected context without being asked", perRun: true},
	}
}

// Bind defines the flags.
func Bind(fs *pflag.FlagSet) {
	for _, s := range settings() {
		usage := s.usage
		if s.env != "" {
			usage += " [" + s.env + "]"
		}
		if s.value == "" {
			fs.BoolP(s.flag, s.short, false, usage)
			continue
		}
		fs.VarP(&named{name: s.value}, s.flag, s.short, usage)
	}
}

// ConnectionFlags lists the flags that are about the connection.
func ConnectionFlags() []string {
	var names []string
	for _, s := range settings() {
		if !s.onLine() {
			names = append(names, s.flag)
		}
	}
	return names
}

// Variables lists the environment variables that Resolve reads, by flag.
func Variables() map[string][]string {
	vars := make(map[string][]string)
	for _, s := range settings() {
		for _, name := range []string{s.env, s.aio} {
			if name != "" {
				vars[s.flag] = append(vars[s.flag], name)
			}
		}
	}
	vars["proxy"] = append(vars["proxy"], proxyVariables()...)
	return vars
}
