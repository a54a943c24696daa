package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseVia(t *testing.T) {
	for text, want := range map[string]string{
		"kubectl":                               "kubectl:azure-iot-operations/aio-broker:18883",
		"kubectl:":                              "kubectl:azure-iot-operations/aio-broker:18883",
		"kubectl:aio-broker-2":                  "kubectl:azure-iot-operations/aio-broker-2:18883",
		"kubectl::1883":                         "kubectl:azure-iot-operations/aio-broker:1883",
		"kubectl:iot/b:1883":                    "kubectl:iot/b:1883",
		"kubectl:lab/iot/b":                     "kubectl:lab/iot/b:18883",
		"kubectl:lab//":                         "kubectl:lab/azure-iot-operations/aio-broker:18883",
		"kubectl:svc/b":                         "kubectl:azure-iot-operations/b:18883",
		"kubectl:pod/b-0":                       "kubectl:azure-iot-operations/pod/b-0:18883",
		"kubectl:iot/deployment/b":              "kubectl:iot/deploy/b:18883",
		"kubectl:arn:aws:eks:eu:1:cluster/x/i/": "kubectl:arn:aws:eks:eu:1:cluster/x/i/aio-broker:18883",
		"kubectl:admin/api-lab:6443/kube:admin/iot/po/b-0:1": "kubectl:admin/api-lab:6443/kube:admin/iot/pod/b-0:1",
	} {
		v, err := ParseVia(text)
		if err != nil || v.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, v, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "expected kubectl[", "ssh:host": "expected kubectl[", "kubectlx": "expected kubectl[",
		"kubectl:b:0": "must be a port", "kubectl:b:x": "must be a port", "kubectl:b:": "must be a port",
		"kubectl:B": "expected the name of a service", "kubectl:-x": "expected the name of a service", "kubectl:pod/": "expected the name of a pod",
		"kubectl:N/b": "expected the name of a namespace", "kubectl:--x/b": "expected the name of a namespace", "kubectl:a\x1bb/iot/b": "expected the name of a kubectl context",
	} {
		if _, err := ParseVia(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzVia: the String form parses to the same value, and kubectl cannot mistake any part for a flag.
func FuzzVia(f *testing.F) {
	for _, text := range []string{"kubectl", "kubectl:a/b/c:1", "kubectl:a/b/pod/c", "kubectl:a:b/c/svc/d:65535", "kubectl://"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseVia(text)
		if err != nil {
			return
		}
		if again, err := ParseVia(v.String()); err != nil || again != v {
			t.Errorf("%q: %+v, then %+v, %v", text, v, again, err)
		}
		if strings.HasPrefix(v.Namespace, "-") || strings.HasPrefix(v.Resource, "-") || strings.HasPrefix(v.Port, "-") || v.Namespace == "" {
			t.Errorf("%q: %+v", text, v)
		}
	})
}

func TestResolveVia(t *testing.T) {
	for _, c := range []struct {
		args, env string
		want      string // via, address, TLS, CA, service account
	}{
		{"--via kubectl", "", "kubectl:azure-iot-operations/aio-broker:18883 aio-broker:18883 tls azure-iot-operations-aio-ca-trust-bundle default"},
		{"", "SSCLI_VIA=kubectl:lab/iot/b:1", "kubectl:lab/iot/b:1 b:1 tls azure-iot-operations-aio-ca-trust-bundle default"},
		{"--via kubectl:pod/p", "", "kubectl:azure-iot-operations/pod/p:18883 aio-broker:18883 tls azure-iot-operations-aio-ca-trust-bundle default"},
		{"--via kubectl --no-tls", "", "kubectl:azure-iot-operations/aio-broker:18883 aio-broker:18883 plain  default"},
		{"--via kubectl --via-ca c --via-service-account a", "", "kubectl:azure-iot-operations/aio-broker:18883 aio-broker:18883 tls c a"},
		{"--via kubectl --ca-file c --username ann", "", "kubectl:azure-iot-operations/aio-broker:18883 aio-broker:18883 tls  "},
		{"--via kubectl --sat-file t --tls-insecure", "", "kubectl:azure-iot-operations/aio-broker:18883 aio-broker:18883 tls  "},
		{"--port 1884", "SSCLI_VIA=kubectl", "kubectl:azure-iot-operations/aio-broker:1884 aio-broker:1884 tls azure-iot-operations-aio-ca-trust-bundle default"},
		{"-u mqtt://h", "SSCLI_VIA=kubectl", " h:1883 plain  "},
		{"--via kubectl", "SSCLI_URL=mqtt://h ALL_PROXY=http://p", "kubectl:azure-iot-operations/aio-broker:18883 aio-broker:18883 tls azure-iot-operations-aio-ca-trust-bundle default"},
	} {
		s, err := resolve(t, c.args, c.env)
		if err != nil {
			t.Errorf("%s %s: %v", c.args, c.env, err)
			continue
		}
		got := []string{"", s.Address, "plain", s.ClusterCA(), s.ClusterAccount()}
		if s.Via != nil {
			got[0] = s.Via.String()
		}
		if s.TLS {
			got[2] = "tls"
		}
		if got := strings.Join(got, " "); got != c.want || s.Proxy != nil {
			t.Errorf("%s %s: %s, proxy %v\nwant %s", c.args, c.env, got, s.Proxy, c.want)
		}
	}
	for args, want := range map[string]string{
		"--via kubectl -u mqtt://h":           "--via: together with --url",
		"--via kubectl -H h":                  "--via: together with --host",
		"--via kubectl --embedded":            "together with --via",
		"--via kubectl --proxy http://p":      "--proxy: together with --via",
		"--via kubectl --via-ca -x":           "--via-ca:",
		"--via kubectl:b:x":                   "--via: port",
		"-u mqtt://h --via-ca x":              "--via-ca: is for a broker in a cluster",
		"-u mqtt://h --via-service-account x": "--via-service-account: is for a broker in a cluster",
	} {
		if _, err := resolve(t, args, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestViaEnviron: a child process gets the setting of --via, but not the address, which is reachable only that way.
func TestViaEnviron(t *testing.T) {
	s, err := resolve(t, "--via kubectl:lab/iot/b --no-tls --via-service-account a", "")
	if err != nil {
		t.Fatal(err)
	}
	set, drops := s.Environ()
	if set["SSCLI_VIA"] != "kubectl:lab/iot/b:18883" || set["SSCLI_TLS"] != "false" || set["SSCLI_VIA_SERVICE_ACCOUNT"] != "a" || set["SSCLI_URL"] != "" ||
		!strings.Contains(strings.Join(drops, " "), "SSCLI_URL") {
		t.Errorf("%v without %v", set, drops)
	}
}

// TestEnviron: a child process gets all connection settings, including those of a context, because it does not read the
// context.
func TestEnviron(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte("contexts: {lab: {url: mqtt://h, proxy: \"socks5://p:5\", timeout: 90s, retry-for: 5s, no-pipelining: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args, env string
		want      map[string]string // empty = dropped
	}{
		{"-c lab --config " + file, "SSCLI_TIMEOUT=1s SSCLI_PROXY=http://q", map[string]string{
			"SSCLI_URL": "mqtt://h:1883", "SSCLI_PROXY": "socks5://p:5", "SSCLI_TIMEOUT": "1m30s", "SSCLI_RETRY_FOR": "5s", "SSCLI_NO_PIPELINING": "true", "SSCLI_CONTEXT": "none",
		}},
		{"-u mqtt://h --proxy http://p --no-pipelining", "", map[string]string{"SSCLI_PROXY": "http://p", "SSCLI_NO_PIPELINING": "true"}},
		{"--via kubectl", "SSCLI_PROXY=http://q", map[string]string{"SSCLI_PROXY": ""}},
		{"-u mqtt://h", "SSCLI_URL=mqtt://q", map[string]string{"SSCLI_CONTROL_URL": "", "SSCLI_WS_URL": ""}},
	} {
		s, err := resolve(t, tt.args, tt.env)
		if err != nil {
			t.Fatal(err)
		}
		set, drops := s.Environ()
		for name, want := range tt.want {
			if set[name] != want || want == "" && !slices.Contains(drops, name) {
				t.Errorf("%s: %s is %q, want %q", tt.args, name, set[name], want)
			}
		}
	}
	s, err := resolve(t, "-u mqtt://h -t 5s", "SSCLI_RETRY_FOR=1s SSCLI_PROXY=http://ann:secret@q")
	if err != nil {
		t.Fatal(err)
	}
	set, drops := s.Environ()
	for _, name := range []string{"SSCLI_TIMEOUT", "SSCLI_RETRY_FOR", "SSCLI_PROXY"} { // the child has the variables, and -t is for this command
		if set[name] != "" || slices.Contains(drops, name) {
			t.Errorf("%s is %q, or dropped", name, set[name])
		}
	}
	for _, env := range []string{"SSCLI_URL=mqtt://h", "AIO_BROKER_HOSTNAME=h"} { // the child has the ports of the same server
		if s, err = resolve(t, "", env); err != nil {
			t.Fatal(err)
		}
		if _, drops := s.Environ(); slices.Contains(drops, "SSCLI_CONTROL_URL") || slices.Contains(drops, "SSCLI_WS_URL") {
			t.Errorf("%s: %v are dropped", env, drops)
		}
	}
}
