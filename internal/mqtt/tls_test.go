package mqtt_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/neterr"
	"github.com/sscli/sscli/internal/testkit/testcert"
)

// A ca is a certificate authority that lasts for a test.
type ca struct {
	t    *testing.T
	cert *testcert.Cert
}

func newCA(t *testing.T) *ca {
	t.Helper()
	return &ca{t, testcert.New(t, nil, testcert.CA("test CA "+rand.Text()))}
}

// leaf issues a certificate for one use.
func (c *ca) leaf(use x509.ExtKeyUsage, names ...string) *testcert.Cert {
	c.t.Helper()
	template := testcert.Leaf(names...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{use}
	return testcert.New(c.t, c.cert, template)
}

// server returns the configuration of a broker on the loopback address.
func (c *ca) server() *tls.Config {
	c.t.Helper()
	return c.leaf(x509.ExtKeyUsageServerAuth, "broker.test", "127.0.0.1").Server()
}

// trust returns the configuration of a client that trusts only this authority, or none.
func trust(t *testing.T, c *ca) *tls.Config {
	t.Helper()
	if c == nil {
		return (*testcert.Cert)(nil).Trust()
	}
	return c.cert.Trust()
}

func TestTLS(t *testing.T) {
	authority := newCA(t)
	server := emulator.Start(t, emulator.Options{TLS: authority.server()})
	messages := make(chan mqtt.Message, 1)
	conn := dial(t, server.Addr().String(), mqtt.Options{
		TLS: trust(t, authority), Subscribe: []string{"t"}, OnMessage: func(m mqtt.Message) { messages <- m },
	})
	acked := make(chan error, 1)
	if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t", Payload: []byte("hello")}, func(err error) { acked <- err }); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, "the acknowledgement", acked); err != nil {
		t.Error(err)
	}
	if m := wait(t, "the message", messages); string(m.Payload) != "hello" {
		t.Errorf("%+v", m)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestZone: the zone of an IPv6 address is a name of this machine, so the certificate need not contain it.
func TestZone(t *testing.T) {
	authority := newCA(t)
	server := emulator.Start(t, emulator.Options{TLS: authority.leaf(x509.ExtKeyUsageServerAuth, "fe80::1").Server()})
	conn := dial(t, "[fe80::1%eth0]:8883", mqtt.Options{TLS: trust(t, authority), Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Addr().String())
	}})
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoConnection checks the stage and the cause of connections that fail before MQTT.
func TestNoConnection(t *testing.T) {
	authority := newCA(t)
	secure := emulator.Start(t, emulator.Options{TLS: authority.server()}).Addr().String()
	plain := emulator.Start(t).Addr().String()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	wrongName := trust(t, authority)
	wrongName.ServerName = "elsewhere.test"
	clientCert := authority.server()
	clientCert.ClientAuth = tls.RequireAnyClientCert
	mutual := emulator.Start(t, emulator.Options{TLS: clientCert}).Addr().String()

	for _, test := range []struct {
		name  string
		o     mqtt.Options
		stage mqtt.Stage
		is    func(error) bool
	}{
		{"unknown CA", mqtt.Options{Address: secure, TLS: trust(t, nil)}, mqtt.StageTLS, has[x509.UnknownAuthorityError]},
		{"wrong host name", mqtt.Options{Address: secure, TLS: wrongName}, mqtt.StageTLS, has[x509.HostnameError]},
		{"TLS to a port without", mqtt.Options{Address: plain, TLS: trust(t, authority)}, mqtt.StageTLS, is(mqtt.ErrBrokerClosed)},
		{"TLS to HTTP", mqtt.Options{Address: hostile(t, func(p *peer) {
			io.ReadFull(p, make([]byte, 5))
			p.send("HTTP/1.1 400 Bad Request\r\n\r\n")
			p.silence()
		}), TLS: trust(t, authority)}, mqtt.StageTLS, has[tls.RecordHeaderError]},
		// Go's servers send nothing; OpenSSL's send an alert, which causes a MalformedError.
		{"plain to a TLS port", mqtt.Options{Address: secure}, mqtt.StageConnect, is(mqtt.ErrBrokerClosed)},
		// With TLS 1.3 the client learns of the refusal only after the handshake.
		{"without a client certificate", mqtt.Options{Address: mutual, TLS: trust(t, authority)}, mqtt.StageConnect, has[*mqtt.ClientCertificateError]},
		{"no such name", mqtt.Options{Address: "broker.invalid:1883"}, mqtt.StageLookup, has[*net.DNSError]},
		{"refused", mqtt.Options{Address: closed.Addr().String()}, mqtt.StageTCP, is(neterr.Refused)},
		{"no port", mqtt.Options{Address: "127.0.0.1"}, mqtt.StageTCP, has[*net.AddrError]},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.o.ClientID = "c"
			_, err := mqtt.Dial(within(t), test.o)
			dialError, ok := errors.AsType[*mqtt.DialError](err)
			if !ok || dialError.Stage != test.stage || !test.is(err) {
				t.Errorf("%v (%T)", err, errors.Unwrap(err))
			}
		})
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := mqtt.Dial(ctx, mqtt.Options{Address: plain, ClientID: "c"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func has[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}
