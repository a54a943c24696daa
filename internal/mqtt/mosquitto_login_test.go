package mqtt_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
)

// userFile returns the path of a Mosquitto password file with one user.
func userFile(t *testing.T, user, password string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users")
	command := exec.Command("mosquitto_passwd", "-c", "-b", file, user, password)
	if out, err := command.CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		t.Skipf("mosquitto is not installed: %v", err)
	} else if err != nil {
		t.Fatalf("mosquitto_passwd: %v: %s", err, out)
	}
	return file
}

func TestMosquittoPassword(t *testing.T) {
	broker := mosquitto.Start(t, "", "allow_anonymous false\npassword_file "+userFile(t, "ann", "secret"))
	for _, test := range []struct {
		user, password string
		works          bool
	}{{"ann", "secret", true}, {"ann", "Secret", false}, {"ann", "", false}, {"bob", "secret", false}, {"", "", false}} {
		o := mqtt.Options{Address: broker.Addresses[0], ClientID: "c", Username: test.user, Subscribe: []string{"t"}}
		if test.password != "" {
			o.Password = []byte(test.password)
		}
		conn, err := mqtt.Dial(within(t), o)
		if test.works {
			if err != nil {
				t.Errorf("%q %q: %v", test.user, test.password, err)
				continue
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		dialError, ok := errors.AsType[*mqtt.DialError](err)
		code, _ := mqtt.ReasonCode(err)
		if !ok || dialError.Stage != mqtt.StageConnect || code != mqtt.ReasonBadLogin && code != mqtt.ReasonNotAuthorized {
			t.Errorf("%q %q: %v", test.user, test.password, err)
		}
	}
}

// dynamicSecurity returns the path of Mosquitto's plugin on Debian and Fedora: Mosquitto has no other way to
// refuse a SUBSCRIBE.
func dynamicSecurity(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/*/mosquitto_dynamic_security.so", "/usr/lib*/mosquitto_dynamic_security.so"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the patterns are valid
			return found[0]
		}
	}
	t.Skip("mosquitto's plugin for dynamic security is not installed")
	return ""
}

func TestMosquittoACL(t *testing.T) {
	plugin := dynamicSecurity(t)
	rules := filepath.Join(t.TempDir(), "rules.json")
	const everybody = `{
		"defaultACLAccess": {"publishClientSend": false, "publishClientReceive": true, "subscribe": false, "unsubscribe": true},
		"anonymousGroup": "everybody", "clients": [],
		"groups": [{"groupname": "everybody", "roles": [{"rolename": "some"}]}],
		"roles": [{"rolename": "some", "acls": [
			{"acltype": "subscribePattern", "topic": "open/#", "allow": true},
			{"acltype": "publishClientSend", "topic": "open/#", "allow": true}]}]}`
	if err := os.WriteFile(rules, []byte(everybody), 0o600); err != nil {
		t.Fatal(err)
	}
	broker := mosquitto.Start(t, "per_listener_settings false\nplugin "+plugin+"\nplugin_opt_config_file "+rules+"\n"+mosquitto.Anonymous, "")
	conn := dial(t, broker.Addresses[0], mqtt.Options{Subscribe: []string{"open/a"}})
	refusal := func(err error, packet, topic string) {
		t.Helper()
		refused, ok := errors.AsType[*mqtt.ReasonError](err)
		if !ok || refused.Packet != packet || refused.Code != mqtt.ReasonNotAuthorized || refused.Topic != topic {
			t.Errorf("%v", err)
		}
	}
	refusal(conn.Subscribe(within(t), "open/b", "closed/a"), "SUBACK", "closed/a")
	acked, outcome := ack()
	if err := conn.Publish(within(t), mqtt.Message{Topic: "closed/a"}, acked); err != nil {
		t.Fatal(err)
	}
	refusal(wait(t, "PUBACK", outcome), "PUBACK", "closed/a")
	acked, outcome = ack()
	if err := conn.Publish(within(t), mqtt.Message{Topic: "open/a"}, acked); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, "PUBACK", outcome); err != nil {
		t.Error(err)
	}
	_, err := mqtt.Dial(within(t), mqtt.Options{Address: broker.Addresses[0], ClientID: "c", Subscribe: []string{"closed/b"}})
	refusal(err, "SUBACK", "closed/b")
	if dialError, ok := errors.AsType[*mqtt.DialError](err); !ok || dialError.Stage != mqtt.StageSubscribe {
		t.Errorf("%v", err)
	}
}

func TestMosquittoTLSVersions(t *testing.T) {
	authority := newCA(t)
	listener := mosquitto.Anonymous + "\n" + listenerTLS(t, authority) + "tls_version "
	broker := mosquitto.Start(t, "", listener+"tlsv1.2", listener+"tlsv1.3")
	for i, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := trust(t, authority)
		config.MaxVersion = version
		conn := dial(t, broker.Addresses[i], mqtt.Options{TLS: config})
		if err := conn.Subscribe(within(t), "t"); err != nil {
			t.Error(err)
		}
	}
	config := trust(t, authority)
	config.MaxVersion = tls.VersionTLS12
	_, err := mqtt.Dial(within(t), mqtt.Options{Address: broker.Addresses[1], TLS: config, ClientID: "c"})
	if dialError, ok := errors.AsType[*mqtt.DialError](err); !ok || dialError.Stage != mqtt.StageTLS || has[*mqtt.ClientCertificateError](err) {
		t.Errorf("TLS 1.2 to 1.3: %v", err)
	}
}

// TestMosquittoNagle: requests work with and without Nagle's algorithm in the broker, one at a time and many
// at once.
func TestMosquittoNagle(t *testing.T) {
	for _, noDelay := range []bool{true, false} {
		t.Run(fmt.Sprint(noDelay), func(t *testing.T) {
			broker := mosquitto.Start(t, fmt.Sprintf("set_tcp_nodelay %t\nmax_inflight_messages 20", noDelay), mosquitto.Anonymous)
			messages := make(chan mqtt.Message, 1000)
			conn := dial(t, broker.Addresses[0], mqtt.Options{Subscribe: []string{"t"}, OnMessage: func(m mqtt.Message) { messages <- m }})
			for _, n := range []int{1, 1, 1, 300} {
				outcomes := make(chan error, n)
				for i := range n {
					if err := conn.Publish(within(t), mqtt.Message{Topic: "t", Payload: fmt.Append(nil, i)}, func(err error) { outcomes <- err }); err != nil {
						t.Fatal(err)
					}
				}
				for i := range n {
					if err := wait(t, "PUBACK", outcomes); err != nil {
						t.Fatal(err)
					}
					if m := wait(t, "the message", messages); string(m.Payload) != fmt.Sprint(i) {
						t.Fatalf("message %q in place of %d", m.Payload, i)
					}
				}
			}
		})
	}
}

func TestMosquittoWebSocket(t *testing.T) {
	// Version 2.0.11 does not start with only a WebSocket listener.
	broker := mosquitto.Start(t, "", mosquitto.Anonymous+"\nprotocol websockets", mosquitto.Anonymous)
	messages := make(chan mqtt.Message, 1)
	conn := dial(t, broker.Addresses[0], mqtt.Options{WebSocket: "/mqtt", Subscribe: []string{"t"}, OnMessage: func(m mqtt.Message) { messages <- m }})
	sent := bytes.Repeat([]byte{0, 0xFF}, 5000) // Mosquitto reads 4 KiB of a WebSocket every 100 ms
	acked, outcome := ack()
	if err := conn.Publish(within(t), mqtt.Message{Topic: "t", Payload: sent}, acked); err != nil {
		t.Fatal(err)
	}
	if m := wait(t, "the message", messages); !bytes.Equal(m.Payload, sent) {
		t.Errorf("%d bytes came of %d", len(m.Payload), len(sent))
	}
	if err := wait(t, "PUBACK", outcome); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestMosquittoWithoutAuthMethods: Mosquitto without a plugin supports no enhanced authentication.
func TestMosquittoWithoutAuthMethods(t *testing.T) {
	broker := mosquitto.Start(t, "", mosquitto.Anonymous)
	_, err := mqtt.Dial(within(t), mqtt.Options{Address: broker.Addresses[0], ClientID: "c", Subscribe: []string{"t"}, Auth: mqtt.Auth{
		Method: "K8S-SAT", Data: func() ([]byte, error) { return []byte("token"), nil },
	}})
	if code, _ := mqtt.ReasonCode(err); code != mqtt.ReasonBadAuthMethod {
		t.Errorf("%v", err)
	}
}
