package certs

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/pemfile"
)

func leaf(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := pemfile.ReadCertificates(text)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Leaf
}

// TestSelfSigned: valid certificates stay. Expired ones, and ones that lack a name, are reissued by the same CA and
// verify.
func TestSelfSigned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	s := SelfSigned{Dir: dir, Names: ServerNames("127.0.0.1:0"), Now: time.Now()}
	prepare := func() {
		t.Helper()
		pair, err := s.Prepare()
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(leaf(t, dir, "ca"))
		for _, name := range s.Names {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: s.Now}); err != nil {
				t.Errorf("the server as %s: %v", name, err)
			}
		}
		if _, err := leaf(t, dir, "client").Verify(x509.VerifyOptions{Roots: roots, CurrentTime: s.Now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("the client: %v", err)
		}
	}
	prepare()
	ca, server, client := leaf(t, dir, "ca"), leaf(t, dir, "server"), leaf(t, dir, "client")
	prepare()
	if !leaf(t, dir, "server").Equal(server) || !leaf(t, dir, "client").Equal(client) {
		t.Error("a good certificate was made again")
	}
	s.Names = append(s.Names, "broker.example", "10.1.2.3")
	prepare()
	if leaf(t, dir, "server").Equal(server) || !leaf(t, dir, "client").Equal(client) || !leaf(t, dir, "ca").Equal(ca) {
		t.Error("a new name: want a new server certificate, and the client and the CA unchanged")
	}
	server = leaf(t, dir, "server")
	s.Now = s.Now.Add(certificateLife + time.Minute)
	prepare()
	if leaf(t, dir, "server").Equal(server) || leaf(t, dir, "client").Equal(client) || !leaf(t, dir, "ca").Equal(ca) {
		t.Error("after a year: want new certificates from the same CA")
	}
	if err := os.WriteFile(filepath.Join(dir, "server.key"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	prepare()
	if err := os.Rename(filepath.Join(dir, "ca.key"), filepath.Join(dir, "kept.key")); err != nil {
		t.Fatal(err)
	}
	for now, want := range map[time.Time]string{
		leaf(t, dir, "server").NotBefore.Add(-time.Minute): "is not valid yet",
		leaf(t, dir, "server").NotAfter:                    "has expired",
	} {
		s.Now = now
		if _, err := s.Prepare(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at %v without ca.key: %v, want that a certificate %s", now, err, want)
		}
	}
	s.Now = s.Now.Add(authorityLife)
	if _, err := s.Prepare(); err == nil || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("with a CA that has expired: %v", err)
	}
}

func TestServerNames(t *testing.T) {
	for listen, want := range map[string]string{"": "localhost", "0.0.0.0:1": "127.0.0.1", "broker.example:1": "broker.example", "[fe80::1]:1": "fe80::1"} {
		names := strings.Join(ServerNames(listen), " ")
		if !strings.Contains(names, want) || strings.Contains(names, "0.0.0.0") {
			t.Errorf("%q: %s", listen, names)
		}
	}
}
