package certs

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/emulator"
)

// TestUTF16 reads files written by the > operator of Windows PowerShell 5.
func TestUTF16(t *testing.T) {
	dir := t.TempDir()
	if _, err := (SelfSigned{Dir: dir, Names: []string{"localhost"}, Now: time.Now()}).Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ca := leaf(t, dir, "ca")
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte("geheim\u00fc\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string {
		name = filepath.Join(dir, name)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		converted := []byte("\xff\xfe")
		for _, unit := range utf16.Encode([]rune(string(text))) {
			converted = append(converted, byte(unit), byte(unit>>8))
		}
		if err := os.WriteFile(name, converted, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	s := config.Settings{
		TLS: true, Address: "localhost:8883", CAFile: file("ca.crt"), CertFile: file("client.crt"), KeyFile: file("client.key"),
	}
	c, err := TLSConfig(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Verify(x509.VerifyOptions{Roots: c.RootCAs}); err != nil || len(c.Certificates) != 1 {
		t.Errorf("%d certificates, %v", len(c.Certificates), err)
	}
	if _, err := Certificate(s.CertFile); err != nil {
		t.Error(err)
	}
	if password, err := ReadSecret(s, "password-file", file("password")); string(password) != "geheim\u00fc" || err != nil {
		t.Errorf("password %q, %v", password, err)
	}
	half := filepath.Join(dir, "half")
	if err := os.WriteFile(half, []byte("\xff\xfea"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Sources = map[string]config.Source{"password-file": {Flag: "password-file"}}
	want := "--password-file: read " + half + ": not UTF-16: half of a character at byte 2"
	if _, err := ReadSecret(s, "password-file", half); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestRotatedCertificate: a connection uses the client certificate that the files have by then. While they do not fit
// together, it uses the last one that did.
func TestRotatedCertificate(t *testing.T) {
	dir, later := t.TempDir(), t.TempDir()
	pair, err := (SelfSigned{Dir: dir, Names: []string{"localhost"}, Now: time.Now()}).Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (SelfSigned{Dir: later, Names: []string{"localhost"}, Now: time.Now()}).Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	replace := func(name string) {
		text, err := os.ReadFile(filepath.Join(later, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, after := leaf(t, dir, "client"), leaf(t, later, "client")
	sent := make(chan *x509.Certificate, 1)
	store := emulator.Start(t, emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert,
		VerifyConnection: func(state tls.ConnectionState) error { sent <- state.PeerCertificates[0]; return nil }}})
	c, err := TLSConfig(config.Settings{TLS: true, Address: "localhost:8883", CAFile: path("ca.crt"), CertFile: path("client.crt"), KeyFile: path("client.key")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		replace string
		want    *x509.Certificate
	}{{"", before}, {"client.crt", before}, {"client.key", after}} {
		if step.replace != "" {
			replace(step.replace)
		}
		conn, err := tls.Dial("tcp", store.Addr().String(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := <-sent; !got.Equal(step.want) {
			t.Errorf("after the new %q: certificate %v, want %v", step.replace, got.SerialNumber, step.want.SerialNumber)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerName: the broker's certificate need not contain the zone of an IPv6 address, a name of this machine.
func TestServerName(t *testing.T) {
	for want, s := range map[string]config.Settings{
		"fe80::1": {Address: "[fe80::1%eth0]:8883"},
		"::1":     {Address: "[::1]:8883"},
		"h":       {Address: "h:8883"},
		"n":       {Address: "[fe80::1%eth0]:8883", ServerName: "n"},
	} {
		s.TLS = true
		if c, err := TLSConfig(s, nil); err != nil || c.ServerName != want {
			t.Errorf("%s: %v, %v, want %s", s.Address, c.ServerName, err, want)
		}
	}
}
