package main

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func leaf(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := readCertificates(text)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Leaf
}

// TestSelfSigned: what is good stays, what has run out or lacks a name is made again,
// by the same CA, and then verifies.
func TestSelfSigned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	s := selfSigned{dir: dir, names: serverNames("127.0.0.1:0"), now: time.Now()}
	prepare := func() {
		t.Helper()
		pair, err := s.prepare()
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(leaf(t, dir, "ca"))
		for _, name := range s.names {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: s.now}); err != nil {
				t.Errorf("the server as %s: %v", name, err)
			}
		}
		if _, err := leaf(t, dir, "client").Verify(x509.VerifyOptions{Roots: roots, CurrentTime: s.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("the client: %v", err)
		}
	}
	prepare()
	ca, server, client := leaf(t, dir, "ca"), leaf(t, dir, "server"), leaf(t, dir, "client")
	prepare()
	if !leaf(t, dir, "server").Equal(server) || !leaf(t, dir, "client").Equal(client) {
		t.Error("a good certificate was made again")
	}
	s.names = append(s.names, "broker.example", "10.1.2.3")
	prepare()
	if leaf(t, dir, "server").Equal(server) || !leaf(t, dir, "client").Equal(client) || !leaf(t, dir, "ca").Equal(ca) {
		t.Error("a new name wants a new certificate of the server, and nothing else")
	}
	server = leaf(t, dir, "server")
	s.now = s.now.Add(certificateLife + time.Minute)
	prepare()
	if leaf(t, dir, "server").Equal(server) || leaf(t, dir, "client").Equal(client) || !leaf(t, dir, "ca").Equal(ca) {
		t.Error("after a year there are to be new certificates of the same CA")
	}
	if err := os.WriteFile(filepath.Join(dir, "server.key"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	prepare()
	s.now = s.now.Add(authorityLife)
	if _, err := s.prepare(); err == nil || !strings.Contains(err.Error(), "ran out at") {
		t.Errorf("with a CA that has run out: %v", err)
	}
}

func TestServerNames(t *testing.T) {
	for listen, want := range map[string]string{"": "localhost", "0.0.0.0:1": "127.0.0.1", "broker.example:1": "broker.example", "[fe80::1]:1": "fe80::1"} {
		names := strings.Join(serverNames(listen), " ")
		if !strings.Contains(names, want) || strings.Contains(names, "0.0.0.0") {
			t.Errorf("%q: %s", listen, names)
		}
	}
}
