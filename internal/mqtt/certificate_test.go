package mqtt_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
)

// client returns a certificate for a client's login.
func (c *ca) client() tls.Certificate {
	return c.leaf(x509.ExtKeyUsageClientAuth, "device").TLS()
}

// listenerTLS returns the configuration of a Mosquitto listener with a certificate.
func listenerTLS(t *testing.T, authority *ca) string {
	t.Helper()
	cert := authority.leaf(x509.ExtKeyUsageServerAuth, "broker.test", "127.0.0.1")
	return "certfile " + writePEM(t, cert.PEM()) + "\nkeyfile " + writePEM(t, cert.KeyPEM(t)) + "\n"
}

// mutualTLS runs a test against brokers that require a client certificate of this authority, with each
// version of TLS.
func mutualTLS(t *testing.T, authority *ca, test func(t *testing.T, address string, namesAuthorities bool, config *tls.Config)) {
	t.Helper()
	versions := func(t *testing.T, address string, namesAuthorities bool) {
		for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
			t.Run(name, func(t *testing.T) {
				config := trust(t, authority)
				config.MinVersion, config.MaxVersion = version, version
				test(t, address, namesAuthorities, config)
			})
		}
	}
	t.Run("emulator", func(t *testing.T) {
		config := authority.server()
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, authority.cert.Pool()
		versions(t, emulator.Start(t, emulator.Options{TLS: config}).Addr().String(), true)
	})
	t.Run("mosquitto", func(t *testing.T) {
		broker := mosquitto.Start(t, "", mosquitto.Anonymous+"\n"+listenerTLS(t, authority)+
			"cafile "+writePEM(t, authority.cert.PEM())+"\nrequire_certificate true")
		versions(t, broker.Addresses[0], false)
	})
}

func TestClientCertificate(t *testing.T) {
	authority, foreign := newCA(t), newCA(t)
	good := authority.client()
	mutualTLS(t, authority, func(t *testing.T, address string, namesAuthorities bool, config *tls.Config) {
		stage := mqtt.StageConnect // with TLS 1.3 the client learns of the refusal only after the handshake
		if config.MaxVersion == tls.VersionTLS12 {
			stage = mqtt.StageTLS
		}
		fails := func(config *tls.Config, given bool) {
			t.Helper()
			for range 20 { // because the alert races with the reset
				_, err := mqtt.Dial(within(t), mqtt.Options{Address: address, TLS: config, ClientID: "c", Subscribe: []string{"t"}})
				dialError, ok := errors.AsType[*mqtt.DialError](err)
				refused, typed := errors.AsType[*mqtt.ClientCertificateError](err)
				if !ok || dialError.Stage != stage || !typed || refused.Given != given {
					t.Errorf("given %t: %v", given, err)
				}
			}
		}
		works := func(config *tls.Config) {
			t.Helper()
			conn := dial(t, address, mqtt.Options{TLS: config})
			if err := conn.Subscribe(within(t), "t"); err != nil {
				t.Error(err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		fails(config, false)

		// A certificate of another authority is sent to a broker that does not name its authorities, and by a
		// client that insists.
		foreigner := foreign.client()
		insists := config.Clone()
		insists.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreigner, nil }
		fails(insists, true)
		config.Certificates = []tls.Certificate{foreigner}
		fails(config, !namesAuthorities)
		_, err := mqtt.Dial(within(t), mqtt.Options{Address: address, TLS: config, ClientID: "c", Subscribe: []string{"t"}})
		refused, _ := errors.AsType[*mqtt.ClientCertificateError](err)
		text := fmt.Sprintf("; it is issued by %q, and the broker asked for one of %q", foreign.cert.Subject, authority.cert.Subject)
		if refused == nil || (refused.Unfit != nil) != namesAuthorities || namesAuthorities && !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}

		config.Certificates = []tls.Certificate{good, foreigner}
		if namesAuthorities {
			config.Certificates = []tls.Certificate{foreigner, good}
		}
		works(config)
		insists.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &good, nil }
		works(insists)
	})
}

// TestClientCertificateIsNotBlamed: if the broker gives a reason itself, that is the error.
func TestClientCertificateIsNotBlamed(t *testing.T) {
	authority := newCA(t)
	config := authority.server()
	config.ClientAuth = tls.RequestClientCert
	server := emulator.Start(t, emulator.Options{TLS: config, CheckLogin: emulator.Passwords(nil)})
	_, err := mqtt.Dial(within(t), mqtt.Options{Address: server.Addr().String(), TLS: trust(t, authority), ClientID: "c"})
	if code, _ := mqtt.ReasonCode(err); code != mqtt.ReasonBadLogin || has[*mqtt.ClientCertificateError](err) {
		t.Errorf("%v", err)
	}
	if text := fmt.Sprint(&mqtt.ClientCertificateError{Err: mqtt.ErrBrokerClosed}); text != "the broker asked for a client certificate and got none: the broker closed the connection" {
		t.Error(text)
	}
}

// TestClientCertificateWebSocket: with WebSockets, the refusal comes with the upgrade.
func TestClientCertificateWebSocket(t *testing.T) {
	authority := newCA(t)
	config := authority.server()
	config.ClientAuth = tls.RequireAnyClientCert
	server := emulator.Start(t, emulator.Options{TLS: config, WebSocket: "127.0.0.1:0"})
	for range 20 {
		_, err := mqtt.Dial(within(t), mqtt.Options{Address: server.WebSocketAddr().String(), TLS: trust(t, authority), WebSocket: "/mqtt"})
		if dialError, ok := errors.AsType[*mqtt.DialError](err); !ok || dialError.Stage != mqtt.StageWebSocket || !has[*mqtt.ClientCertificateError](err) {
			t.Errorf("%v", err)
		}
	}
}
