package mqtt_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
)

func writePEM(t *testing.T, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMosquitto(t *testing.T) {
	authority := newCA(t)
	acl := filepath.Join(t.TempDir(), "acl")
	if err := os.WriteFile(acl, []byte("topic readwrite open/#\ntopic read closed/#\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broker := mosquitto.Start(t, "max_keepalive 30\nmax_inflight_messages 1\nmax_packet_size 100000",
		"allow_anonymous true\nacl_file "+acl,
		"allow_anonymous false",
		"allow_anonymous true\n"+listenerTLS(t, authority),
	)
	open, locked, secure := broker.Addresses[0], broker.Addresses[1], broker.Addresses[2]

	t.Run("messages", func(t *testing.T) {
		messages := make(chan mqtt.Message, 10)
		conn := dial(t, open, mqtt.Options{Subscribe: []string{"open/+"}, OnMessage: func(m mqtt.Message) { messages <- m }})
		sent := mqtt.Message{
			Topic: "open/a", Payload: bytes.Repeat([]byte{0, 0xFF}, 30_000), ResponseTopic: "open/b", Correlation: []byte{1, 0, 2},
			ContentType: "application/octet-stream", User: []mqtt.Property{{Name: "a", Value: "1"}, {Name: "a", Value: ""}, {Name: "b", Value: "ü"}},
		}
		for range 5 {
			acked, outcome := ack()
			if err := conn.Publish(within(t), sent, acked); err != nil {
				t.Fatal(err)
			}
			got := wait(t, "the message", messages)
			want := sent
			want.QoS = 1
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("another message came: %.200q", fmt.Sprint(got))
			}
			if err := wait(t, "PUBACK", outcome); err != nil {
				t.Error(err)
			}
		}
		acked, outcome := ack()
		if err := conn.Publish(within(t), mqtt.Message{Topic: "open/nobody/is/there"}, acked); err != nil {
			t.Fatal(err)
		}
		if err := wait(t, "PUBACK", outcome); !errors.Is(err, mqtt.ErrNoSubscribers) {
			t.Errorf("nobody subscribed: %v", err)
		}
		acked, outcome = ack()
		if err := conn.Publish(within(t), mqtt.Message{Topic: "closed/a"}, acked); err != nil {
			t.Fatal(err)
		}
		err := wait(t, "PUBACK", outcome)
		if code, ok := mqtt.ReasonCode(err); !ok || code != mqtt.ReasonNotAuthorized {
			t.Errorf("closed/a: %v", err)
		}
		err = conn.Publish(within(t), mqtt.Message{Topic: "open/a", Payload: make([]byte, 100_000)}, func(error) {})
		if _, ok := errors.AsType[*mqtt.TooLargeError](err); !ok {
			t.Errorf("%v, want a TooLargeError", err)
		}
		if limits := conn.Limits(); limits.ReceiveMaximum != 1 || limits.MaxPacketSize != 100_000 || limits.KeepAlive.Seconds() != 30 {
			t.Errorf("%+v", limits)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("pipeline", func(t *testing.T) {
		conn := dial(t, open, mqtt.Options{})
		const n = 200
		outcomes := make(chan error, n)
		for range n {
			if err := conn.Publish(within(t), mqtt.Message{Topic: "open/c"}, func(err error) { outcomes <- err }); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			if err := granted(wait(t, "PUBACK", outcomes)); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("taken over", func(t *testing.T) {
		first := dial(t, open, mqtt.Options{ClientID: "same"})
		dial(t, open, mqtt.Options{ClientID: "same"})
		err := lost(t, first) // versions before 2.1 close the connection without a reason
		if code, ok := mqtt.ReasonCode(err); !hungUp(err) && (!ok || code != mqtt.ReasonTakenOver) {
			t.Errorf("%v", err)
		}
	})
	t.Run("TLS", func(t *testing.T) {
		conn := dial(t, secure, mqtt.Options{TLS: trust(t, authority)})
		acked, outcome := ack()
		if err := conn.Publish(within(t), mqtt.Message{Topic: "open/a"}, acked); err != nil {
			t.Fatal(err)
		}
		if err := granted(wait(t, "PUBACK", outcome)); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, test := range []struct {
		name  string
		o     mqtt.Options
		stage mqtt.Stage
		is    func(error) bool
	}{
		{"login refused", mqtt.Options{Address: locked, Subscribe: []string{"t"}}, mqtt.StageConnect, func(err error) bool {
			code, ok := mqtt.ReasonCode(err)
			return ok && code == mqtt.ReasonNotAuthorized
		}},
		{"plain to a TLS port", mqtt.Options{Address: secure}, mqtt.StageConnect, func(err error) bool {
			// The reset that follows OpenSSL's alert may overtake it.
			malformed, ok := errors.AsType[*mqtt.MalformedError](err)
			return hungUp(err) || ok && strings.Contains(malformed.Why, "TLS")
		}},
		{"TLS to a plain port", mqtt.Options{Address: open, TLS: trust(t, authority)}, mqtt.StageTLS, hungUp},
		{"unknown CA", mqtt.Options{Address: secure, TLS: trust(t, nil)}, mqtt.StageTLS, has[x509.UnknownAuthorityError]},
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
}

// hungUp reports whether the broker closed the connection without a reason. Closing a socket with unread
// bytes resets the connection.
func hungUp(err error) bool {
	return errors.Is(err, mqtt.ErrBrokerClosed) || errors.Is(err, syscall.ECONNRESET)
}
