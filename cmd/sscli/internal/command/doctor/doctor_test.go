package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

// runDoctor runs doctor against a store; nil = none.
var runDoctor = apptest.Runner(app.Command{Name: "doctor", New: New})

// TestChecks: with --write every check runs, and no key is left behind. The first failing check is the last to run.
func TestChecks(t *testing.T) {
	store := emulator.Start(t)
	code, stdout, stderr := runDoctor(t, store.URL(), "--write")
	for _, name := range []string{"configuration", "lookup", "tcp", "tls", "connect", "subscribe", "store", "round trip", "clock", "write", "notify", "scan", "dialect"} {
		if !strings.Contains(stdout, "\t"+name+"\t") {
			t.Errorf("no check %s in\n%s", name, stdout)
		}
	}
	if code != 0 || len(store.Keys()) > 0 {
		t.Errorf("exit code %d, and the keys %q are left\n%s", code, store.Keys(), stderr)
	}
	store.RefuseConnect(func(string, string) byte { return 0x87 })
	code, stdout, _ = runDoctor(t, store.URL(), "--write")
	if code == 0 || strings.Contains(stdout, "subscribe") || strings.Contains(stdout, "clock") {
		t.Errorf("%d\n%s\nwant the checks to end with connect", code, stdout)
	}
}

// TestWebSocketSecret: the query of a WebSocket's path may hold a secret, so no check shows it.
func TestWebSocketSecret(t *testing.T) {
	store := emulator.Start(t, emulator.Options{WebSocket: "127.0.0.1:0"})
	for _, form := range []string{"human", "raw", "json"} {
		code, stdout, stderr := runDoctor(t, "", "-o", form, "-u", store.WebSocketURL()+"?token=hunter2")
		if code != 0 || !strings.Contains(stdout, "/mqtt") || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%s: exit code %d\n%s%s", form, code, stdout, stderr)
		}
	}
}

// TestUnverified: with --tls-insecure, a certificate for another host is a warning, also if the host is an address.
func TestUnverified(t *testing.T) {
	dir := t.TempDir()
	pair, err := certs.SelfSigned{Dir: dir, Names: []string{"localhost", "127.0.0.1"}, Now: time.Now()}.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := emulator.Start(t, emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{pair}}})
	for name, want := range map[string]string{
		"127.0.0.1": "pass", "localhost": "pass", "127.0.0.2": "warn", "other.example": "warn",
	} {
		code, stdout, stderr := runDoctor(t, store.URL(), "--tls-insecure", "--ca-file", filepath.Join(dir, "ca.crt"), "--tls-server-name", name)
		if code != 0 || !strings.Contains(stdout, "\n"+want+"\ttls\t") {
			t.Errorf("%s: exit code %d, want %s\n%s%s", name, code, want, stdout, stderr)
		}
	}
}

// TestCertificates: a certificate of the broker or of the client that expires soon is a warning.
func TestCertificates(t *testing.T) {
	now := time.Now()
	certificate := func(name string, left time.Duration) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: now.Add(left), DNSNames: []string{name}}
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		broker, own time.Duration
		want        string
		about       string
	}{
		{365 * day, 365 * day, format.Pass, ""},
		{13 * day, 365 * day, format.Warn, `"CN=broker" expires in 312h0m0s`},
		{365 * day, day, format.Warn, `"CN=own" expires in 24h0m0s`},
	} {
		c := &checkup{o: client.Options{TLS: &tls.Config{Certificates: []tls.Certificate{{Leaf: certificate("own", tt.own)}}}}}
		c.recorder.tls = &tls.ConnectionState{Version: tls.VersionTLS13, PeerCertificates: []*x509.Certificate{certificate("broker", tt.broker)}}
		check := format.Check{Status: format.Pass}
		c.certificates(&check, now)
		if check.Status != tt.want || !strings.Contains(check.Message, tt.about) {
			t.Errorf("%v and %v: %v, %q", tt.broker, tt.own, check.Status, check.Message)
		}
	}
}

// TestAuthorities: a CA of the cluster that has expired is a warning that names it.
func TestAuthorities(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	ca := func(name string, left time.Duration) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: now.Add(left)}
	}
	check := format.Check{Status: format.Pass, Message: "the config map m"}
	authorities(&check, []*x509.Certificate{ca("new", time.Hour)}, now)
	if check.Status != format.Pass || check.Message != "the config map m" || len(check.Facts) != 1 {
		t.Errorf("%+v", check)
	}
	authorities(&check, []*x509.Certificate{ca("old", -time.Hour)}, now)
	const want = `the config map m; the CA "CN=old" expired at 2026-10-31T23:00:00Z`
	if check.Status != format.Warn || check.Message != want || check.Hint == "" {
		t.Errorf("%+v, want %s", check, want)
	}
}

func TestLogin(t *testing.T) {
	certified := &tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{Subject: pkix.Name{CommonName: "op"}}}}}
	for _, tt := range []struct {
		o    client.Options
		want string
	}{
		{client.Options{}, "without a login"},
		{client.Options{Username: "op"}, `as "op"`},
		{client.Options{TokenFile: "/sat", Username: "op"}, "with the service-account token of /sat"},
		{client.Options{TLS: certified, Username: "op"}, `with the certificate of "CN=op" and as "op"`},
	} {
		if diff := cmp.Diff(tt.want, login(tt.o)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
