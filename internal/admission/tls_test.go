package admission_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/testkit/memtest"
	"github.com/sscli/sscli/internal/testkit/testcert"
)

// certificate returns a certificate that the given change makes large.
func certificate(t *testing.T, key ed25519.PrivateKey, change func(*x509.Certificate)) []byte {
	t.Helper()
	template := testcert.Leaf("c")
	if change != nil {
		change(&template)
	}
	cert, err := testcert.Sign(nil, key, template)
	if err != nil {
		t.Fatal(err)
	}
	return cert.Raw
}

// A server accepts connections and completes their handshakes.
type server struct {
	ln   net.Listener
	ends chan end
}

type end struct {
	conn net.Conn
	err  error
}

func newServer(t *testing.T, config *tls.Config) server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server{admission.ListenTLS(ln, config, new(admission.Line)), make(chan end)}
	t.Cleanup(func() { s.ln.Close() })
	go func() {
		for {
			nc, err := s.ln.Accept()
			if err != nil {
				return
			}
			s.ends <- end{nc, admission.Handshake(context.Background(), nc)}
		}
	}()
	return s
}

// dial returns both ends of a new connection, and the error of the server's handshake.
func (s server) dial(t *testing.T, chain tls.Certificate) (client, server net.Conn, err error) {
	t.Helper()
	c, err := tls.Dial("tcp", s.ln.Addr().String(), &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &chain, nil }})
	if err == nil {
		client = c
		t.Cleanup(func() { c.Close() })
	}
	e := <-s.ends
	t.Cleanup(func() { e.conn.Close() })
	return client, e.conn, e.err
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestHandshake: a client may send 32 KiB until its handshake is complete, and any number of bytes after it.
func TestHandshake(t *testing.T) {
	key := newKey(t)
	leaf := certificate(t, key, nil)
	s := newServer(t, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}}, ClientAuth: tls.RequireAnyClientCert})
	for size, good := range map[int]bool{0: true, 16 << 10: true, 31 << 10: false, 200 << 10: false} {
		chain := tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: key}
		for have := 0; have < size; have += len(leaf) {
			chain.Certificate = append(chain.Certificate, leaf)
		}
		client, server, err := s.dial(t, chain)
		if (err == nil) != good {
			t.Errorf("%d bytes of certificates: %v", size, err)
		}
		if err != nil {
			continue
		}
		const n = 1 << 20
		go client.Write(make([]byte, n))
		if _, err := io.ReadFull(server, make([]byte, n)); err != nil {
			t.Errorf("after the handshake: %v", err)
		}
	}
}

// TestCertificateMemory: no certificate takes much more memory than it is estimated to.
func TestCertificateMemory(t *testing.T) {
	key := newKey(t)
	s := newServer(t, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate(t, key, nil)}, PrivateKey: key}}, ClientAuth: tls.RequireAnyClientCert})
	for what, test := range map[string]struct {
		number int // of certificates
		change func(c *x509.Certificate)
	}{
		"a small certificate":     {1, nil},
		"many small certificates": {100, nil},
		"a certificate of names":  {1, func(c *x509.Certificate) { c.DNSNames = make([]string, 9000); fill(c.DNSNames, "a") }},
		"a certificate of email":  {1, func(c *x509.Certificate) { c.EmailAddresses = make([]string, 9000); fill(c.EmailAddresses, "a") }},
		"a certificate of addresses": {1, func(c *x509.Certificate) {
			for i := range 4500 {
				c.IPAddresses = append(c.IPAddresses, net.IPv4(1, 2, byte(i>>8), byte(i)))
			}
		}},
		"a certificate of policies": {1, func(c *x509.Certificate) {
			for i := range 2500 {
				oid, err := x509.OIDFromInts([]uint64{1, 2, uint64(i)})
				if err != nil {
					t.Fatal(err)
				}
				c.Policies = append(c.Policies, oid)
			}
		}},
		"a certificate with a long subject": {1, func(c *x509.Certificate) {
			for range 1200 {
				c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "a"})
			}
		}},
		"a certificate of extensions": {1, func(c *x509.Certificate) {
			for i := range 2000 {
				c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, i}, Value: []byte{5, 0}})
			}
		}},
		"a certificate of uses": {1, func(c *x509.Certificate) {
			for i := range 4000 {
				c.UnknownExtKeyUsage = append(c.UnknownExtKeyUsage, asn1.ObjectIdentifier{1, 2, i})
			}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			const clients = 10
			var chains []tls.Certificate
			sent := 0
			for range clients {
				chain := tls.Certificate{PrivateKey: key}
				for range test.number {
					der := certificate(t, key, test.change)
					sent += len(der)
					chain.Certificate = append(chain.Certificate, der)
				}
				chains = append(chains, chain)
			}
			var conns []net.Conn
			cost, memory := 0, -memtest.Heap()
			for _, chain := range chains {
				client, server, err := s.dial(t, chain)
				if err != nil {
					t.Fatal(err)
				}
				cost += admission.CertificateMemory(server)
				conns = append(conns, client, server)
			}
			memory += memtest.Heap()
			const besides = 24 << 10 // both ends of a TLS connection
			t.Logf("%d bytes sent, estimate %d, memory %d", sent/clients, cost/clients, memory/clients)
			if memory > cost*5/4+clients*besides {
				t.Errorf("the estimate is %d bytes, %d are in use", cost/clients, memory/clients)
			}
			runtime.KeepAlive(conns)
		})
	}
}

func fill(list []string, text string) {
	for i := range list {
		list[i] = text
	}
}

// TestHandshakeTurns: at most half of the CPUs work on handshakes, and those that wait for their clients hold up no other.
func TestHandshakeTurns(t *testing.T) {
	key := newKey(t)
	var working, most atomic.Int64
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate(t, key, nil)}, PrivateKey: key}}}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if n := working.Add(1); n > most.Load() {
			most.Store(n)
		}
		for range 1000 { // as a signature that takes long
			runtime.Gosched()
		}
		working.Add(-1)
		return nil, nil
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln = admission.ListenTLS(ln, config, new(admission.Line))
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _ = admission.Handshake(context.Background(), nc) }()
		}
	}()
	for range 50 { // half a record
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte{22, 3, 1, 2, 0, 1}); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	all.Wait()
	if limit := int64(max(1, runtime.GOMAXPROCS(0)/2)); most.Load() > limit {
		t.Errorf("%d handshakes worked at the same time, expected at most %d", most.Load(), limit)
	}
}

// A deafListener accepts connections whose client takes nothing, as many as deaf says, and then others.
type deafListener struct {
	net.Listener
	deaf chan struct{}
}

func (l deafListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	select {
	case <-l.deaf:
		return deafConn{nc}, err
	default:
		return nc, err
	}
}

type deafConn struct{ net.Conn }

func (c deafConn) Write([]byte) (int, error) {
	_, err := io.Copy(io.Discard, c.Conn) // until the connection is closed
	return 0, err
}

// TestDeafHandshakes: clients that take nothing of a handshake have no turn meanwhile.
func TestDeafHandshakes(t *testing.T) {
	key := newKey(t)
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate(t, key, nil)}, PrivateKey: key}}}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	clients := 2 * runtime.GOMAXPROCS(0)
	deaf := make(chan struct{}, clients)
	ln := admission.ListenTLS(deafListener{inner, deaf}, config, new(admission.Line))
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _ = admission.Handshake(context.Background(), nc) }()
		}
	}()
	for range clients {
		deaf <- struct{}{}
		nc, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		go func() { _ = tls.Client(nc, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	}
	for len(deaf) > 0 { // all of them have been accepted
		runtime.Gosched()
	}
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 20 * time.Second}, "tcp", inner.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
