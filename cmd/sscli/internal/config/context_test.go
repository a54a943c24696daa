package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/internal/testkit/systext"
)

// contexts is the context file that the tests resolve with.
const contexts = `
current: lab
contexts:
  lab:
    url: mqtts://lab.example
    ca-file: ca.crt
    sat-file: /run/token
    timeout: 5s
    protected: true
  plain: {host: plain.example, port: 5, no-tls: true, username: ann, askpass: true}
  login: {username: ann, password-file: /run/password}
  here: {embedded: true}
  bad: {url: "mqtt://ann:hunter2@h"}
  proxy: {url: mqtt://h, proxy: "http://ann:hunter2@h"}
`

func writeContexts(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestResolveContext(t *testing.T) {
	file := writeContexts(t, contexts)
	ca := filepath.Join(filepath.Dir(file), "ca.crt")
	for _, c := range []struct {
		args, env string
		context   string
		url       string
		from      string // source of the URL
		override  string
	}{
		{"", "", "lab", "mqtts://lab.example:8883", "context lab: url", ""},
		{"-c plain", "", "plain", "mqtt://plain.example:5", "context plain: host", ""},
		{"", "SSCLI_CONTEXT=plain", "plain", "mqtt://plain.example:5", "context plain: host", ""},
		{"-c lab", "SSCLI_CONTEXT=plain", "lab", "mqtts://lab.example:8883", "context lab: url", ""},
		{"-c none", "SSCLI_CONTEXT=plain", "", "", "", ""},
		{"", "SSCLI_CONTEXT=none AIO_BROKER_HOSTNAME=h", "", "mqtts://h:8883", "AIO_BROKER_HOSTNAME", ""},

		// Another broker hides a chosen context completely, but not a context that a flag names.
		{"-u mqtt://h", "", "", "mqtt://h:1883", "--url", ""},
		{"-H h", "SSCLI_CONTEXT=plain", "", "mqtts://h:8883", "--host", ""},
		{"", "SSCLI_URL=mqtt://h", "", "mqtt://h:1883", "SSCLI_URL", "lab: SSCLI_URL"},
		{"", "SSCLI_HOST=h SSCLI_CONTEXT=plain", "", "mqtts://h:8883", "SSCLI_HOST", "plain: SSCLI_HOST"},
		{"-c lab -u mqtts://127.0.0.1:5", "", "lab", "mqtts://127.0.0.1:5", "--url", ""},
		{"-c lab", "SSCLI_URL=mqtt://h", "lab", "mqtts://lab.example:8883", "context lab: url", ""},
		{"-c login", "SSCLI_URL=mqtt://h", "login", "mqtt://h:1883", "SSCLI_URL", ""},
		{"", "AIO_BROKER_HOSTNAME=h AIO_BROKER_TCP_PORT=5 AIO_MQTT_USE_TLS=false", "lab", "mqtts://lab.example:8883", "context lab: url", ""},

		// A variable overrides one setting of a context.
		{"-p 5", "", "lab", "mqtts://lab.example:5", "context lab: url", ""},
		{"", "SSCLI_PORT=5", "lab", "mqtts://lab.example:5", "context lab: url", "lab: SSCLI_PORT"},
		{"-p 6", "SSCLI_PORT=5", "lab", "mqtts://lab.example:6", "context lab: url", ""},
		{"", "SSCLI_TIMEOUT=1s SSCLI_PORT=5 SSCLI_OUTPUT=raw", "lab", "mqtts://lab.example:5", "context lab: url", "lab: SSCLI_PORT SSCLI_TIMEOUT"},
		{"", "SSCLI_USERNAME=bob", "lab", "mqtts://lab.example:8883", "context lab: url", "lab: SSCLI_USERNAME"},
		{"-c lab", "SSCLI_TIMEOUT=1s", "lab", "mqtts://lab.example:8883", "context lab: url", ""},
		{"--embedded=false", "", "lab", "mqtts://lab.example:8883", "context lab: url", ""},
	} {
		s, err := resolve(t, c.args, c.env+" SSCLI_CONFIG="+file)
		if err != nil {
			t.Errorf("%s %s: %v", c.args, c.env, err)
			continue
		}
		url := ""
		if s.Address != "" {
			url = s.URL()
		}
		override := ""
		if s.Override.Context != "" {
			override = s.Override.Context + ": " + strings.Join(s.Override.Variables, " ")
		}
		if s.Context != c.context || url != c.url || s.Sources["host"].String() != c.from || override != c.override {
			t.Errorf("%s %s: context %q, %q of %q, overridden %q; want %q, %q of %q, %q",
				c.args, c.env, s.Context, url, s.Sources["host"], override, c.context, c.url, c.from, c.override)
		}
		if s.Protected != (c.context == "lab") {
			t.Errorf("%s %s: protected is %t", c.args, c.env, s.Protected)
		}
		if want := c.context == "lab"; (s.CAFile == ca) != want {
			t.Errorf("%s %s: CA file %q, want the context's, next to its file: %t", c.args, c.env, s.CAFile, want)
		}
		if c.context == "" && s.SATFile != "" {
			t.Errorf("%s %s: the token of a context that does not count: %q", c.args, c.env, s.SATFile)
		}
	}
}

func TestResolveContextLogin(t *testing.T) {
	file := writeContexts(t, contexts)
	for _, c := range []struct {
		args, env      string
		username       string
		ask            bool
		password, sat  string
		passwordSource string
	}{
		{"-c plain", "", "ann", true, "", "", ""},
		{"-c plain --password-file /f", "", "ann", false, "/f", "", "--password-file"},
		{"-c plain --askpass=false", "SSCLI_PASSWORD_FILE=/f", "ann", false, "/f", "", "SSCLI_PASSWORD_FILE"},
		{"-c login", "", "ann", false, filepath.VolumeName(file) + "/run/password", "", "context login: password-file"},
		{"-c login --askpass", "", "ann", true, "", "", ""},
		{"-c login --username bob --askpass", "AIO_SAT_FILE=/t", "bob", true, "", "", ""},
		{"-c login --sat-file /t", "", "", false, "", "/t", ""},
		{"-c lab --username bob --askpass", "", "bob", true, "", "", ""},
		{"-c none --username bob --askpass", "AIO_MQTT_PASSWORD_FILE=/f", "bob", true, "", "", ""},
	} {
		s, err := resolve(t, c.args, c.env+" SSCLI_CONFIG="+file)
		if err != nil {
			t.Errorf("%s %s: %v", c.args, c.env, err)
			continue
		}
		if s.Username != c.username || s.AskPass != c.ask || s.PasswordFile != c.password || s.SATFile != c.sat || s.Sources["password-file"].String() != c.passwordSource {
			t.Errorf("%s %s: %q, ask %t, password %q of %q, token %q", c.args, c.env, s.Username, s.AskPass, s.PasswordFile, s.Sources["password-file"], s.SATFile)
		}
	}
}

func TestResolveContextErrors(t *testing.T) {
	file := writeContexts(t, contexts)
	dangling := writeContexts(t, "current: gone\n")
	broken := writeContexts(t, "contexts: [")
	for _, c := range []struct{ args, env, want string }{
		{"-c labb", "", `--context: unknown context "labb" (did you mean lab?)`},
		{"-c LAB", "", `--context: unknown context "LAB" (did you mean lab?)`},
		{"", "SSCLI_CONTEXT=production", `SSCLI_CONTEXT: unknown context "production"`},
		{"-c bad", "", "context bad: url: a password in a URL is visible to others: use --password-file"},
		{"-c proxy", "", "context proxy: proxy: a context holds no passwords: use SSCLI_PROXY"},
		{"--config " + dangling, "", dangling + `: current: unknown context "gone"`},
		{"--config " + broken, "", broken + ":1: not YAML: expected a value: a bracket or brace has no counterpart"},
		{"--config /no/such/file", "", "/no/such/file: no such file or directory"},
		{"--username a --askpass --password-file f", "", "--askpass: together with --password-file: use only one of them"},
		{"--askpass --sat-file f", "", "--sat-file: together with --askpass: expected a token, or a user name and password"},
		{"-c none --askpass", "", "--askpass: without a user name: add --username"},
	} {
		s, err := resolve(t, "-o json "+c.args, c.env+" SSCLI_CONFIG="+file)
		if err == nil || systext.Unix(err.Error()) != c.want {
			t.Errorf("%s %s: %v, want %s", c.args, c.env, err, c.want)
		}
		if s.Output != "json" {
			t.Errorf("%s %s: the output is %q, want json in spite of the error", c.args, c.env, s.Output)
		}
	}
	// The context file is not read if it cannot matter.
	for _, c := range []struct{ args, env string }{
		{"-u mqtt://h", ""},
		{"-u mqtt://h", "SSCLI_CONTEXT=gone"},
		{"", "SSCLI_URL=mqtt://h"},
		{"-c none", ""},
	} {
		if _, err := resolve(t, c.args, c.env+" SSCLI_CONFIG="+broken); err != nil {
			t.Errorf("%s %s: %v", c.args, c.env, err)
		}
	}
	if _, err := resolve(t, "", "SSCLI_CONFIG=/no/such/file"); err != nil {
		t.Errorf("a file that is not there yet: %v", err)
	}
}

// TestResolveRun: commands that do not connect read no context.
func TestResolveRun(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Bind(fs)
	if err := fs.Parse([]string{"-c", "gone", "--config", "/no/such/file", "-u", "nonsense", "-o", "json", "-q"}); err != nil {
		t.Fatal(err)
	}
	s, err := ResolveRun(fs, func(name string) (string, bool) { return "always", name == "SSCLI_COLOR" })
	if err != nil || s.Output != "json" || !s.Quiet || s.Color != "always" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "Lab", "1", "eu-west.prod_2", "true", strings.Repeat("a", 64)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "none", "-a", ".a", "a b", "a/b", "ä", "a\n", "a:", strings.Repeat("a", 65)} {
		if _, ok := errors.AsType[*Error](CheckName(name)); !ok {
			t.Errorf("%q is a name", name)
		}
	}
}

func TestChange(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	at := func(file string) string { return filepath.Join(wd, file) }
	lab := map[string]string{"url": "mqtts://lab.example", "sat-file": "/run/token"}
	for _, c := range []struct {
		before map[string]string
		args   string
		unset  string
		want   map[string]string // nil = expect an error
		none   bool
	}{
		{nil, "-u mqtt://h", "", map[string]string{"url": "mqtt://h"}, false},
		{nil, "-H h -p 5 --no-tls -t 1s -i x -o json -q --trace -c y --config z", "",
			map[string]string{"host": "h", "port": "5", "no-tls": "true", "timeout": "1s", "client-id": "x"}, false},
		{nil, "--embedded", "", map[string]string{"embedded": "true"}, false},
		{lab, "--ca-file ca.crt", "", map[string]string{"url": "mqtts://lab.example", "sat-file": "/run/token", "ca-file": at("ca.crt")}, false},
		{lab, "", "sat-file", map[string]string{"url": "mqtts://lab.example"}, false},
		{lab, "", "--sat-file", map[string]string{"url": "mqtts://lab.example"}, false},
		{lab, "", "protected", lab, false},
		{lab, "", "", lab, true},
		{lab, "-H h", "", map[string]string{"host": "h", "sat-file": "/run/token"}, false},
		{lab, "--embedded", "", map[string]string{"embedded": "true", "sat-file": "/run/token"}, false},
		{lab, "--embedded=false", "", map[string]string{"url": "mqtts://lab.example", "sat-file": "/run/token", "embedded": "false"}, false},
		{lab, "--username ann --askpass", "", map[string]string{"url": "mqtts://lab.example", "username": "ann", "askpass": "true"}, false},
		{map[string]string{"host": "h", "port": "5", "tls": "true"}, "-u mqtt://i", "", map[string]string{"url": "mqtt://i"}, false},
		{map[string]string{"host": "h", "tls": "true"}, "--no-tls", "", map[string]string{"host": "h", "no-tls": "true"}, false},

		{nil, "", "", nil, false},
		{nil, "--ca-file x", "", nil, false},
		{nil, "-u nonsense", "", nil, false},
		{nil, "-u mqtt://ann:hunter2@h", "", nil, false},
		{nil, "-u mqtt://h --proxy http://ann:hunter2@h", "", nil, false},
		{nil, "-u mqtt://h -H h", "", nil, false},
		{nil, "-u mqtt://h --ca-file x", "", nil, false},
		{nil, "-u mqtt://h -t soon", "", nil, false},
		{nil, "-u mqtt://h -i a\u202eb", "", nil, false},
		{nil, "-u mqtt://h -i a\xff", "", nil, false},
		{lab, "-p 5", "", nil, false},
		{map[string]string{"url": "mqtt://h", "proxy": "http://ann:hunter2@h"}, "-t 1s", "", nil, false}, // edited by hand
		{lab, "--cert-file x", "", nil, false},
		{lab, "--username a --sat-file x", "", nil, false},
		{lab, "", "url", nil, false},
		{lab, "", "nonsense", nil, false},
		{lab, "", "output", nil, false},
	} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		Bind(fs)
		if err := fs.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		context := Context{Values: c.before}
		none, err := context.Change(fs, strings.Fields(c.unset))
		if c.want == nil {
			if err == nil {
				t.Errorf("%v %s -%s: %v, want an error", c.before, c.args, c.unset, context.Values)
			} else if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: the error repeats the password: %v", c.args, err)
			}
			if diff := cmp.Diff(c.before, context.Values); diff != "" {
				t.Errorf("%s: changed in spite of the error:\n%s", c.args, diff)
			}
			continue
		}
		if err != nil || none != c.none {
			t.Errorf("%v %s -%s: none %t, %v", c.before, c.args, c.unset, none, err)
		}
		if diff := cmp.Diff(c.want, context.Values); diff != "" {
			t.Errorf("%v %s -%s: -want +got\n%s", c.before, c.args, c.unset, diff)
		}
	}
}

// TestEffective: each setting that a context can have is shown.
func TestEffective(t *testing.T) {
	shown := make(map[string]bool)
	for _, args := range []string{
		"-H h -p 5 --tls --ca-file f --cert-file f --key-file f --key-password-file f --tls-server-name n --tls-insecure --username n --password-file f" +
			" --proxy http://p --client-id i --response-topic t --high-priority --metric-category m --no-pipelining -t 1s --retry-for 1s -o json --color never --trace --trace-file f --trace-format json -q -v",
		"-u mqtt://h --sat-file f", "--embedded", "-u mqtt://h --username ann --askpass",
		"--via kubectl --via-ca c --via-service-account a",
	} {
		s, err := resolve(t, args, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Effective() {
			shown[e.Flag] = true
			if !strings.HasPrefix(e.Source, "--") {
				t.Errorf("%s: --%s is of %q", args, e.Flag, e.Source)
			}
		}
	}
	for _, s := range settings() {
		switch s.flag {
		case "host", "port", "tls", "no-tls": // part of the URL
		case "context", "config", "yes":
		default:
			if !shown[s.flag] {
				t.Errorf("--%s is not shown", s.flag)
			}
		}
	}
	s, err := resolve(t, "", "SSCLI_PROXY=http://ann:hunter2@h SSCLI_URL=ws://h/mqtt?key=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Effective() {
		if strings.Contains(e.Value, "hunter2") {
			t.Errorf("%s shows a secret: %s", e.Flag, e.Value)
		}
	}
}
