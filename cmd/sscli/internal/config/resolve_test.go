package config

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

// resolve resolves a command line with an environment, given as words NAME=VALUE.
func resolve(t *testing.T, args, env string) (Settings, error) {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Bind(fs)
	if err := fs.Parse(strings.Fields(args)); err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	vars := make(map[string]string)
	for _, word := range strings.Fields(env) {
		name, value, _ := strings.Cut(word, "=")
		vars[name] = value
	}
	return Resolve(fs, func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	})
}

func TestResolveEndpoint(t *testing.T) {
	for _, c := range []struct {
		args, env string
		want      Settings
		source    string // the source that decides the address
	}{
		{"", "", Settings{}, ""},
		{"-u mqtt://h", "", Settings{Address: "h:1883"}, "--url"},
		{"-u mqtts://h", "", Settings{Address: "h:8883", TLS: true}, "--url"},
		{"-u MQTT://h/", "", Settings{Address: "h:1883"}, "--url"},
		{"-u mqtt://h:5", "", Settings{Address: "h:5"}, "--url"},
		{"-u mqtt://[::1]", "", Settings{Address: "[::1]:1883"}, "--url"},
		{"-u mqtts://[fe80::1%25eth0]:5", "", Settings{Address: "[fe80::1%eth0]:5", TLS: true}, "--url"},
		{"-u mqtt://ann@h", "", Settings{Address: "h:1883", Username: "ann"}, "--url"},
		{"-u mqtt://ann@h --username bob", "", Settings{Address: "h:1883", Username: "bob"}, "--url"},
		{"-H h", "", Settings{Address: "h:8883", TLS: true}, "--host"},
		{"-H h --no-tls", "", Settings{Address: "h:1883"}, "--host"},
		{"-H h --tls=false", "", Settings{Address: "h:1883"}, "--host"},
		{"-H h --no-tls=false", "", Settings{Address: "h:8883", TLS: true}, "--host"},
		{"-H h -p 5 --no-tls", "", Settings{Address: "h:5"}, "--host"},
		{"-H ::1", "", Settings{Address: "[::1]:8883", TLS: true}, "--host"},
		{"-H [::1] -p 5", "", Settings{Address: "[::1]:5", TLS: true}, "--host"},
		{"--embedded", "", Settings{Embedded: true}, "--embedded"},
		{"-u ws://h", "", Settings{Address: "h:80", WebSocket: "/mqtt"}, "--url"},
		{"-u wss://ann@h:5/a/b?c=d", "", Settings{Address: "h:5", TLS: true, WebSocket: "/a/b?c=d", Username: "ann"}, "--url"},
		{"-u WSS://h/", "", Settings{Address: "h:443", TLS: true, WebSocket: "/"}, "--url"},

		{"", "SSCLI_URL=mqtt://h:5", Settings{Address: "h:5"}, "SSCLI_URL"},
		{"", "SSCLI_HOST=h SSCLI_PORT=5 SSCLI_TLS=false", Settings{Address: "h:5"}, "SSCLI_HOST"},
		{"", "SSCLI_EMBEDDED=1", Settings{Embedded: true}, "SSCLI_EMBEDDED"},
		{"", "AIO_BROKER_HOSTNAME=h", Settings{Address: "h:8883", TLS: true}, "AIO_BROKER_HOSTNAME"},
		{"", "AIO_BROKER_HOSTNAME=h AIO_BROKER_TCP_PORT=5 AIO_MQTT_USE_TLS=False", Settings{Address: "h:5"}, "AIO_BROKER_HOSTNAME"},
		{"", "AIO_BROKER_TCP_PORT=5 AIO_MQTT_USE_TLS=false", Settings{}, ""},

		// The source that names the host hides port and TLS of sources with lower precedence. Port and TLS of sources
		// with higher precedence still apply.
		{"-H h", "SSCLI_PORT=5 SSCLI_TLS=false", Settings{Address: "h:8883", TLS: true}, "--host"},
		{"-u mqtt://h", "SSCLI_PORT=5 AIO_MQTT_USE_TLS=true", Settings{Address: "h:1883"}, "--url"},
		{"", "SSCLI_URL=mqtt://h AIO_BROKER_HOSTNAME=i AIO_BROKER_TCP_PORT=5 AIO_MQTT_USE_TLS=true", Settings{Address: "h:1883"}, "SSCLI_URL"},
		{"-p 5 --no-tls", "SSCLI_HOST=h SSCLI_PORT=6 SSCLI_TLS=true", Settings{Address: "h:5"}, "SSCLI_HOST"},
		{"-p 5", "AIO_BROKER_HOSTNAME=h AIO_MQTT_USE_TLS=false", Settings{Address: "h:5"}, "AIO_BROKER_HOSTNAME"},
		{"", "SSCLI_PORT=5 AIO_BROKER_HOSTNAME=h AIO_BROKER_TCP_PORT=6", Settings{Address: "h:5", TLS: true}, "AIO_BROKER_HOSTNAME"},
		{"-u mqtt://h", "SSCLI_EMBEDDED=true", Settings{Address: "h:1883"}, "--url"},
		{"--embedded", "SSCLI_URL=mqtt://h", Settings{Embedded: true}, "--embedded"},
		{"", "SSCLI_EMBEDDED=true AIO_BROKER_HOSTNAME=h", Settings{Embedded: true}, "SSCLI_EMBEDDED"},
		{"--embedded=false", "SSCLI_EMBEDDED=true AIO_BROKER_HOSTNAME=h", Settings{Address: "h:8883", TLS: true}, "AIO_BROKER_HOSTNAME"},
		{"-H h", "SSCLI_URL=ws://i/path", Settings{Address: "h:8883", TLS: true}, "--host"},
		{"-u mqtt://h", "SSCLI_URL=ws://i/path", Settings{Address: "h:1883"}, "--url"},
		{"-p 5", "SSCLI_URL=ws://i/path", Settings{Address: "i:5", WebSocket: "/path"}, "SSCLI_URL"},
		{"", "SSCLI_URL= AIO_BROKER_HOSTNAME=h", Settings{Address: "h:8883", TLS: true}, "AIO_BROKER_HOSTNAME"},
	} {
		got, err := resolve(t, c.args, c.env)
		if err != nil {
			t.Errorf("%s %s: %v", c.args, c.env, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Settings{}, "Sources")); diff != "" {
			t.Errorf("%s %s: -want +got:\n%s", c.args, c.env, diff)
		}
		decides := "host"
		if got.Embedded {
			decides = "embedded"
		}
		if got.Sources[decides].String() != c.source {
			t.Errorf("%s %s: decided by %q, want %q", c.args, c.env, got.Sources[decides], c.source)
		}
		if missing := got.Broker(); (missing != nil) != (c.source == "") {
			t.Errorf("%s %s: Broker() = %v", c.args, c.env, missing)
		}
	}
}

func TestResolveRest(t *testing.T) {
	for _, c := range []struct {
		args, env string
		want      Settings
	}{
		{"-t 5s -o json --color never --trace --trace-file f -q -v", "",
			Settings{Timeout: 5 * time.Second, Output: "json", Color: "never", Trace: true, TraceFile: "f", Quiet: true, Verbose: 1}},
		{"", "SSCLI_TIMEOUT=250ms SSCLI_OUTPUT=raw SSCLI_COLOR=always SSCLI_TRACE=1 SSCLI_TRACE_FILE=f",
			Settings{Timeout: 250 * time.Millisecond, Output: "raw", Color: "always", Trace: true, TraceFile: "f"}},
		{"--trace=false", "SSCLI_TRACE=1", Settings{}},
		{"-i a", "SSCLI_CLIENT_ID=b AIO_MQTT_CLIENT_ID=c", Settings{ClientID: "a"}},
		{"", "SSCLI_CLIENT_ID=b AIO_MQTT_CLIENT_ID=c", Settings{ClientID: "b"}},
		{"", "AIO_MQTT_CLIENT_ID=c", Settings{ClientIDPrefix: "c"}},
		{"--cert-file c --key-file k --key-password-file p", "AIO_TLS_CERT_FILE=d AIO_TLS_KEY_FILE=l",
			Settings{CertFile: "c", KeyFile: "k", KeyPasswordFile: "p"}},
		{"--cert-file c --key-file k", "AIO_TLS_CERT_FILE=d AIO_TLS_KEY_FILE=l AIO_TLS_KEY_PASSWORD_FILE=p", Settings{CertFile: "c", KeyFile: "k"}},
		{"--key-password-file q", "AIO_TLS_CERT_FILE=d AIO_TLS_KEY_FILE=l AIO_TLS_KEY_PASSWORD_FILE=p",
			Settings{CertFile: "d", KeyFile: "l", KeyPasswordFile: "q"}},
		{"", "SSCLI_CERT_FILE=c SSCLI_KEY_FILE=k SSCLI_KEY_PASSWORD_FILE=p", Settings{CertFile: "c", KeyFile: "k", KeyPasswordFile: "p"}},
		{"--sat-file s", "SSCLI_SAT_FILE=t AIO_MQTT_USERNAME=b AIO_MQTT_PASSWORD_FILE=f", Settings{SATFile: "s"}},
		{"", "SSCLI_SAT_FILE=t AIO_SAT_FILE=u", Settings{SATFile: "t"}},
		{"--username a", "AIO_SAT_FILE=s", Settings{Username: "a"}},
		{"--username a", "AIO_SAT_FILE=s AIO_MQTT_USERNAME=b AIO_MQTT_PASSWORD_FILE=f", Settings{Username: "a", PasswordFile: "f"}},
		{"--username a --password-file f", "AIO_MQTT_USERNAME=b", Settings{Username: "a", PasswordFile: "f"}},
		{"", "AIO_MQTT_USERNAME=b AIO_MQTT_PASSWORD_FILE=f AIO_TLS_CA_FILE=ca", Settings{Username: "b", PasswordFile: "f", CAFile: "ca"}},
		{"--response-topic r --high-priority --tls-insecure --tls-server-name n --ca-file ca", "",
			Settings{ResponseTopic: "r", HighPriority: true, Insecure: true, ServerName: "n", CAFile: "ca"}},
	} {
		got, err := resolve(t, c.args, c.env)
		if err != nil {
			t.Errorf("%s %s: %v", c.args, c.env, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Settings{}, "Sources")); diff != "" {
			t.Errorf("%s %s: -want +got:\n%s", c.args, c.env, diff)
		}
	}
}

// TestPasswordInHost: a password in place of a host name is refused, and never shown.
func TestPasswordInHost(t *testing.T) {
	file := writeContexts(t, "contexts: {host: {host: 'ann:hunter2@h'}, url: {url: 'ann:hunter2@h'}, proxy: {host: h, proxy: 'ann:hunter2@h:1'}}\n")
	for _, c := range []struct{ args, env, source string }{
		{"-H ann:hunter2@h", "", "--host"},
		{"-H ann:hunter2@h:1883", "", "--host"},
		{"-H :hunter2@h", "", "--host"},
		{"-H hunter2@h", "", "--host"},
		{"-H mqtt://ann:hunter2@h", "", "--host"},
		{"-u ann:hunter2@h", "", "--url"},
		{"-u mqtt://ann:hunter2@h", "", "--url"},
		{"-H h --proxy ann:hunter2@h:1", "", "--proxy"},
		{"", "SSCLI_HOST=ann:hunter2@h", "SSCLI_HOST"},
		{"", "AIO_BROKER_HOSTNAME=ann:hunter2@h", "AIO_BROKER_HOSTNAME"},
		{"", "SSCLI_URL=ann:hunter2@h", "SSCLI_URL"},
		{"", "SSCLI_HOST=h SSCLI_PROXY=ftp://ann:hunter2@h", "SSCLI_PROXY"},
		{"-c host", "", "context host: host"},
		{"-c url", "", "context url: url"},
		{"-c proxy", "", "context proxy: proxy"},
	} {
		s, err := resolve(t, c.args, c.env+" SSCLI_CONFIG="+file)
		if e, ok := errors.AsType[*Error](err); !ok || e.Source.String() != c.source || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s %s: %v", c.args, c.env, err)
		}
		for _, e := range s.Effective() {
			if strings.Contains(e.Value, "hunter2") {
				t.Errorf("%s %s: %s shows the password: %s", c.args, c.env, e.Flag, e.Value)
			}
		}
	}
}

func TestResolveErrors(t *testing.T) {
	for _, c := range []struct{ args, env, source string }{
		{"-u nonsense", "", "--url"},
		{"-u mqtt://h -H i", "", "--url"},
		{"-u mqtt://h -p 5", "", "--url"},
		{"-u mqtt://h --no-tls", "", "--url"},
		{"", "SSCLI_URL=mqtt://h SSCLI_PORT=5", "SSCLI_URL"},
		{"", "SSCLI_URL=mqtt://a:b@h", "SSCLI_URL"},
		{"-H h --tls --no-tls", "", "--no-tls"},
		{"-H h -p 0", "", "--port"},
		{"-H h -p 65536", "", "--port"},
		{"-H h:5", "", "--host"},
		{"-H h/x", "", "--host"},
		{"-H [", "", "--host"},
		{"-H []", "", "--host"},
		{"-H [::1", "", "--host"},
		{"", "SSCLI_HOST=a@b", "SSCLI_HOST"},
		{"--embedded -H h", "", "--embedded"},
		{"", "SSCLI_EMBEDDED=perhaps", "SSCLI_EMBEDDED"},
		{"-t 0", "", "--timeout"},
		{"-t -1s", "", "--timeout"},
		{"", "SSCLI_TIMEOUT=x", "SSCLI_TIMEOUT"},
		{"--color x", "", "--color"},
		{"--password-file f", "", "--password-file"},
		{"-H h --no-tls --ca-file f", "", "--ca-file"},
		{"-u ws://h --cert-file f --key-file k", "", "--cert-file"},
		{"--cert-file f", "AIO_TLS_CERT_FILE=d AIO_TLS_KEY_FILE=l", "--cert-file"},
		{"--key-file f", "", "--key-file"},
		{"", "AIO_TLS_KEY_PASSWORD_FILE=p", "AIO_TLS_KEY_PASSWORD_FILE"},
		{"--sat-file s --username a", "", "--sat-file"},
		{"--sat-file s -u mqtt://a@h", "", "--sat-file"},
		{"", "AIO_SAT_FILE=s AIO_MQTT_USERNAME=b", "AIO_SAT_FILE"},
		{"-u ws://h#f", "", "--url"},
		{"--proxy http://a:b@h", "", "--proxy"},
		{"--proxy ftp://h", "", "--proxy"},
		{"", "SSCLI_PROXY=socks5://", "SSCLI_PROXY"},
		{"-H h", "ALL_PROXY=http://h/path", "ALL_PROXY"},
		{"", "AIO_BROKER_HOSTNAME=h AIO_BROKER_TCP_PORT=x", "AIO_BROKER_TCP_PORT"},
	} {
		got, err := resolve(t, "-o json "+c.args, c.env)
		if e, ok := errors.AsType[*Error](err); !ok || e.Source.String() != c.source {
			t.Errorf("%s %s: %v, want an *Error of %s", c.args, c.env, err, c.source)
		}
		if got.Output != "json" {
			t.Errorf("%s %s: the output is %q, want json in spite of the error", c.args, c.env, got.Output)
		}
	}
}

func TestResolveProxy(t *testing.T) {
	for _, c := range []struct{ args, env, want, source string }{
		{"-H h", "", "", ""},
		{"-H h --proxy socks5://p", "", "socks5://p", "--proxy"},
		{"-H h --proxy socks5h://ann@p:5/", "SSCLI_PROXY=http://q", "socks5h://ann@p:5/", "--proxy"},
		{"-H h --proxy p:5", "", "http://p:5", "--proxy"},
		{"-H h", "SSCLI_PROXY=https://ann:secret@p ALL_PROXY=http://q", "https://ann:secret@p", "SSCLI_PROXY"},
		{"-H h", "ALL_PROXY=http://p all_proxy=http://q", "http://p", "ALL_PROXY"},
		{"-H h", "all_proxy=http://q", "http://q", "all_proxy"},
		{"-H 127.0.0.1", "ALL_PROXY=http://p", "", ""},
		{"-H localhost", "ALL_PROXY=http://p", "", ""},
		{"-H 127.0.0.1", "SSCLI_PROXY=http://p NO_PROXY=*", "http://p", "SSCLI_PROXY"},
		{"-H h", "ALL_PROXY=http://p NO_PROXY=*", "", ""},
		{"-H h.example", "ALL_PROXY=http://p NO_PROXY=example", "", ""},
		{"-H h.example", "ALL_PROXY=http://p NO_PROXY=other,10.0.0.0/8", "http://p", "ALL_PROXY"},
		{"-H 10.1.2.3", "ALL_PROXY=http://p no_proxy=other,10.0.0.0/8", "", ""},
		{"-H ::2", "ALL_PROXY=http://p NO_PROXY=[::2]:1883", "http://p", "ALL_PROXY"},
		{"-H h -p 5", "ALL_PROXY=http://p NO_PROXY=h:5", "", ""},
		{"-H h", "ALL_PROXY=http://p NO_PROXY=h:5", "http://p", "ALL_PROXY"},
		{"--embedded", "ALL_PROXY=nonsense://", "", ""},
		{"", "ALL_PROXY=nonsense://", "", ""},
	} {
		s, err := resolve(t, c.args, c.env)
		if err != nil {
			t.Errorf("%s %s: %v", c.args, c.env, err)
			continue
		}
		got := ""
		if s.Proxy != nil {
			got = s.Proxy.String()
		}
		if got != c.want || s.Sources["proxy"].String() != c.source {
			t.Errorf("%s %s: %q, decided by %q, want %q, %q", c.args, c.env, got, s.Sources["proxy"], c.want, c.source)
		}
	}
}

func TestURL(t *testing.T) {
	for _, want := range []string{"mqtt://h:1883", "mqtts://[::1]:5", "ws://h:5/mqtt", "wss://h:443/a/b"} {
		s, err := resolve(t, "-u "+want, "")
		if got := s.URL(); err != nil || got != want {
			t.Errorf("%s: %s, %v", want, got, err)
		}
	}
	s, err := resolve(t, "-u ws://ann@h/a?key=secret", "")
	if want := "ws://h:80/a"; err != nil || s.URL() != want {
		t.Errorf("%s, %v, want %s", s.URL(), err, want)
	}
}

// FuzzProxy: an error never contains the password of a proxy.
func FuzzProxy(f *testing.F) {
	f.Add("http://ann:", "@h")
	f.Add("ann:", "@h:5")
	f.Add("ftp://ann:%zz", "@h")
	f.Add("http://ann:", "@h/path")
	f.Add("http://ann:", "")
	f.Fuzz(func(t *testing.T, before, behind string) {
		const password = "hunter2"
		text := before + password + behind
		u, err := parseProxy(text)
		if err != nil && strings.Contains(err.Error(), password) && strings.Contains(before, ":") {
			t.Errorf("%q: the error repeats the password: %v", text, err)
		}
		if err == nil && u.Hostname() == "" {
			t.Errorf("%q has no host", text)
		}
	})
}

func TestEmptyFlags(t *testing.T) {
	for _, name := range []string{"url", "host", "port", "username", "client-id", "timeout", "output"} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		Bind(fs)
		if err := fs.Parse([]string{"--" + name, ""}); err == nil {
			t.Errorf("--%s takes an empty value", name)
		}
	}
}

func TestVariables(t *testing.T) {
	vars := Variables()
	if diff := cmp.Diff([]string{"SSCLI_HOST", "AIO_BROKER_HOSTNAME"}, vars["host"]); diff != "" {
		t.Error(diff)
	}
	if _, ok := vars["quiet"]; ok {
		t.Error("--quiet has a variable")
	}
}

// FuzzResolve: a resolved address splits into a host and a port that can be dialed. Neither the settings nor the error
// contain a password.
func FuzzResolve(f *testing.F) {
	f.Add("mqtt://h:5", "", "", "")
	f.Add("mqtt://ann:hunter2@h", "", "", "")
	f.Add("mqtts://[::1]:5", "", "", "")
	f.Add("wss://ann:hunter2@h/path?a=b", "", "", "")
	f.Add("mqtt://[fe80::1%25eth0]", "", "", "")
	f.Add("mqtt://ann:hunter2%zz@h", "", "", "")
	f.Add("//ann:hunter2@h", "", "", "")
	f.Add("", "h", "5", "true")
	f.Add("", "[::1]", "", "false")
	f.Add("", "::1", "70000", "x")
	f.Add("", "a]:5", "5", "")
	f.Add("", "[", "", "0")
	f.Fuzz(func(t *testing.T, url, host, port, tls string) {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		Bind(fs)
		env := map[string]string{"SSCLI_URL": url, "SSCLI_HOST": host, "SSCLI_PORT": port, "SSCLI_TLS": tls}
		s, err := Resolve(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		const password = "hunter2"
		before, _, _ := strings.Cut(url, "@")
		if strings.HasSuffix(before, ":"+password) && !strings.ContainsAny(before, "?#") && strings.Count(url, password) == 1 {
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("the error repeats the password: %v", err)
			}
			if strings.Contains(s.Address+s.Username, password) {
				t.Errorf("the settings hold the password: %+v", s)
			}
		}
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("%v is no *Error", err)
			}
			return
		}
		if s.Address == "" {
			return
		}
		h, p, err := net.SplitHostPort(s.Address)
		if err != nil || h == "" || p == "" {
			t.Errorf("address %q: host %q, port %q, %v", s.Address, h, p, err)
		}
	})
}

func TestLine(t *testing.T) {
	base := Settings{
		Address: "h:1883", ClientID: "me", Timeout: time.Second, Output: "json", Trace: true, Quiet: true,
		Sources: map[string]Source{"host": {Env: "SSCLI_URL"}, "output": {Env: "SSCLI_OUTPUT"}},
	}
	change := func(f func(*Settings)) Settings {
		s := base
		f(&s)
		return s
	}
	for _, tt := range []struct {
		args       string
		want       Settings
		connection string
		err        string
	}{
		{"", base, "", ""},
		{"-o raw -t 5s", change(func(s *Settings) { s.Output, s.Timeout = "raw", 5*time.Second }), "", ""},
		{"--trace=false -q=false -v", change(func(s *Settings) { s.Trace, s.Quiet, s.Verbose = false, false, 1 }), "", ""},
		{"--color never --trace-file f", change(func(s *Settings) { s.Color, s.TraceFile = "never", "f" }), "", ""},
		{"-u mqtt://other -o raw -i you", change(func(s *Settings) { s.Output = "raw" }), "--url", ""},
		{"--embedded=false", base, "--embedded", ""},
		{"-t never", change(func(s *Settings) { s.Timeout = 0 }), "", `--timeout: "never": expected a duration such as 500ms, 10s or 2m`},
		{"--color blue", change(func(s *Settings) { s.Color = "" }), "", `--color: "blue": expected auto, always or never`},
	} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		Bind(fs)
		if err := fs.Parse(strings.Fields(tt.args)); err != nil {
			t.Fatal(err)
		}
		got, connection, err := base.Line(fs)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != tt.err || connection != tt.connection {
			t.Errorf("%s: %q and %q, want %q and %q", tt.args, connection, text, tt.connection, tt.err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Settings{}, "Sources")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, diff)
		}
		if strings.Contains(tt.args, "-o ") && (got.Sources["output"].Flag != "output" || got.Sources["host"].Env != "SSCLI_URL") {
			t.Errorf("%s: the sources are %v", tt.args, got.Sources)
		}
	}
	if base.Sources["output"].Env != "SSCLI_OUTPUT" {
		t.Error("a line changed the settings of the shell")
	}
}
