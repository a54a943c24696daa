package certs

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
		pair, err := s.Prepare(t.Context())
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
	if err := os.Remove(filepath.Join(dir, "server.key")); err != nil {
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
		if _, err := s.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at %v without ca.key: %v, want that a certificate %s", now, err, want)
		}
	}
	s.Now = s.Now.Add(authorityLife)
	if _, err := s.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("with a CA that has expired: %v", err)
	}
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(text)
	}
	return all
}

// TestSelfSignedForeign: a key is never replaced, and a certificate only if a CA of Prepare has issued it.
func TestSelfSignedForeign(t *testing.T) {
	t.Parallel()
	names := []string{"localhost"}
	for what, tt := range map[string]struct {
		change func(t *testing.T, s SelfSigned)
		want   string
	}{
		"a key without a certificate": {func(t *testing.T, s SelfSigned) {
			if err := os.Remove(s.path("server.crt")); err != nil {
				t.Fatal(err)
			}
		}, "server.key exists without server.crt"},
		"a key that is no key": {func(t *testing.T, s SelfSigned) {
			if err := os.WriteFile(s.path("server.key"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "server.key: "},
		"another key": {func(t *testing.T, s SelfSigned) {
			if err := os.Rename(s.path("client.key"), s.path("server.key")); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(s.path("client.crt")); err != nil {
				t.Fatal(err)
			}
		}, "server.key is not the key of server.crt"},
		"another CA, and another name": {func(t *testing.T, s SelfSigned) {
			for _, name := range []string{"ca", "client", "server"} {
				for _, kind := range []string{".crt", ".key"} {
					if err := os.Remove(s.path(name + kind)); err != nil {
						t.Fatal(err)
					}
				}
			}
			ca, err := s.issue("ca", &x509.Certificate{
				Subject: pkix.Name{CommonName: "mine"}, NotAfter: s.Now.Add(time.Hour),
				IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
			}, signingCA{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, names := range map[string][]string{"client": {"client"}, "server": {"broker.example"}} {
				if err := s.certificate(name, ca, names, x509.ExtKeyUsageServerAuth); err != nil {
					t.Fatal(err)
				}
			}
		}, "server.crt is not for localhost: use another directory"},
	} {
		s := SelfSigned{Dir: t.TempDir(), Names: names, Now: time.Now()}
		if _, err := s.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		tt.change(t, s)
		before := contents(t, s.Dir)
		_, err := s.Prepare(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", what, err, tt.want)
		}
		after := contents(t, s.Dir)
		for name, text := range before {
			if after[name] != text {
				t.Errorf("%s: %s was replaced", what, name)
			}
		}
	}
}

// TestSelfSignedTogether: processes that prepare the same directory at the same time get certificates of one CA.
func TestSelfSignedTogether(t *testing.T) {
	t.Parallel()
	s := SelfSigned{Dir: t.TempDir(), Names: []string{"localhost"}, Now: time.Now()}
	const many = 8
	leaves := make([]*x509.Certificate, many)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			<-start
			pair, err := s.Prepare(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			leaves[i] = pair.Leaf
		})
	}
	close(start)
	group.Wait()
	for _, cert := range leaves {
		if cert == nil || !cert.Equal(leaf(t, s.Dir, "server")) || cert.CheckSignatureFrom(leaf(t, s.Dir, "ca")) != nil {
			t.Error("a certificate was replaced, or is not from the CA of the directory")
		}
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
