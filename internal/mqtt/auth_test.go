package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
)

// tokens returns an Auth whose data a test can change.
func tokens(current *atomic.Value) mqtt.Auth {
	return mqtt.Auth{Method: "K8S-SAT", Data: func() ([]byte, error) { return []byte(current.Load().(string)), nil }}
}

func TestAuth(t *testing.T) {
	server := emulator.Start(t, emulator.Options{CheckToken: func(token []byte, _ time.Time) (emulator.Login, error) {
		if !strings.HasPrefix(string(token), "good") {
			return emulator.Login{}, errors.New("not a good token")
		}
		return emulator.Login{}, nil
	}})
	var token atomic.Value
	token.Store("good-1")
	var mu sync.Mutex
	var trace []string
	messages := make(chan mqtt.Message, 1)
	conn := dial(t, server.Addr().String(), mqtt.Options{
		Auth: tokens(&token), Subscribe: []string{"t"}, OnMessage: func(m mqtt.Message) { messages <- m },
		Tap: func(e mqtt.Event) {
			mu.Lock()
			defer mu.Unlock()
			trace = append(trace, fmt.Sprintf("%t %s %s", e.Sent, e.Type, e.Detail))
		},
	})
	token.Store("good-2")
	if err := conn.Reauthenticate(within(t)); err != nil {
		t.Fatal(err)
	}
	server.RefuseReauth(func(string, []byte) byte { return 0x18 })
	if err := conn.Reauthenticate(within(t)); err != mqtt.ErrAuthLater {
		t.Errorf("%v, want ErrAuthLater", err)
	}
	acked, outcome := ack()
	if err := conn.Publish(within(t), mqtt.Message{Topic: "t"}, acked); err != nil {
		t.Fatal(err)
	}
	wait(t, "the message", messages)
	if err := wait(t, "PUBACK", outcome); err != nil {
		t.Error(err)
	}
	server.RefuseReauth(nil)
	token.Store("bad")
	err := conn.Reauthenticate(within(t))
	if code, _ := mqtt.ReasonCode(err); !has[*mqtt.LostError](err) || !has[*mqtt.ReauthError](err) || code != mqtt.ReasonNotAuthorized {
		t.Errorf("a bad token: %v", err)
	}
	if again := lost(t, conn); again != err {
		t.Errorf("the connection: %v", again)
	}
	if again := conn.Reauthenticate(within(t)); again != err {
		t.Errorf("afterwards: %v", again)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		`true CONNECT client id "TestAuth", clean start true, keep alive 60s, authentication method "K8S-SAT"`,
		`false CONNACK 0x00 success`,
		`true SUBSCRIBE "t" QoS 1`,
		`false SUBACK 0x01 granted QoS 1`,
		`true AUTH 0x19 re-authenticate, authentication method "K8S-SAT"`,
		`false AUTH 0x00 success, authentication method "K8S-SAT"`,
		`true AUTH 0x19 re-authenticate, authentication method "K8S-SAT"`,
		`false AUTH 0x18 continue authentication, authentication method "K8S-SAT"`,
	}
	for i, line := range want {
		if i >= len(trace) || !strings.HasPrefix(trace[i], line) {
			t.Fatalf("packet %d of\n%s\nis not %s", i, strings.Join(trace, "\n"), line)
		}
	}
	if all := strings.Join(trace, "\n"); strings.Contains(all, "good") || strings.Contains(all, "bad-") {
		t.Errorf("the trace shows a token:\n%s", all)
	}
}

func TestAuthRefused(t *testing.T) {
	server := emulator.Start(t, emulator.Options{CheckToken: func([]byte, time.Time) (emulator.Login, error) { return emulator.Login{}, errors.New("no") }})
	for method, code := range map[string]byte{"K8S-SAT": mqtt.ReasonNotAuthorized, "OTHER": mqtt.ReasonBadAuthMethod} {
		_, err := mqtt.Dial(within(t), mqtt.Options{
			Address: server.Addr().String(), ClientID: "c", Subscribe: []string{"t"},
			Auth: mqtt.Auth{Method: method, Data: func() ([]byte, error) { return []byte("x"), nil }},
		})
		refused, ok := errors.AsType[*mqtt.DialError](err)
		if got, _ := mqtt.ReasonCode(err); !ok || refused.Stage != mqtt.StageConnect || got != code {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestAuthWithoutData: without authentication data, Dial fails before it opens a connection.
func TestAuthWithoutData(t *testing.T) {
	missing := errors.New("no such file")
	for _, auth := range []mqtt.Auth{
		{Method: "m"},
		{Method: "m", Data: func() ([]byte, error) { return nil, missing }},
		{Method: "m", Data: func() ([]byte, error) { return make([]byte, 1<<16), nil }},
		{Method: strings.Repeat("m", 1<<16), Data: func() ([]byte, error) { return nil, nil }},
	} {
		_, err := mqtt.Dial(within(t), mqtt.Options{Address: "broker.invalid:1", ClientID: "c", Auth: auth})
		if dialError, ok := errors.AsType[*mqtt.DialError](err); !ok || dialError.Stage != mqtt.StageConnect {
			t.Errorf("%v", err)
		}
	}
	conn := dial(t, emulator.Start(t).Addr().String(), mqtt.Options{})
	if err := conn.Reauthenticate(within(t)); err == nil || conn.Err() != nil {
		t.Errorf("without a method: %v, %v", err, conn.Err())
	}
}

func auth(code byte) string { return string([]byte{0xF0, 2, code, 0}) }

// TestAuthHeldBack: before CONNACK, the broker gets only CONNECT (MQTT 5, 3.1.2-30).
func TestAuthHeldBack(t *testing.T) {
	one := mqtt.Auth{Method: "m", Data: func() ([]byte, error) { return []byte("d"), nil }}
	address := hostile(t, func(p *peer) {
		connect := p.read(packets.CONNECT).Content.(*packets.Connect)
		if connect.Properties.AuthMethod != "m" || string(connect.Properties.AuthData) != "d" {
			p.t.Errorf("%v", connect.Properties)
		}
		p.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if n, err := p.Read(make([]byte, 1)); n > 0 {
			p.t.Errorf("something came before CONNACK (%v)", err)
		}
		p.SetReadDeadline(time.Time{})
		p.send(connack(0))
		id := p.read(packets.SUBSCRIBE).PacketID()
		p.send(string([]byte{0x90, 4, byte(id >> 8), byte(id), 0, 1}))
		first := make([]byte, 1)
		if io.ReadFull(p, first); first[0] != 0xF0 {
			p.t.Errorf("AUTH begins with %#x", first[0])
		}
		p.send(auth(0))
		p.silence()
	})
	conn := dial(t, address, mqtt.Options{Auth: one, Subscribe: []string{"t"}})
	if err := conn.Reauthenticate(within(t)); err != nil {
		t.Error(err)
	}
}

func TestAuthHostile(t *testing.T) {
	one := mqtt.Auth{Method: "m", Data: func() ([]byte, error) { return []byte("d"), nil }}
	t.Run("a further step", func(t *testing.T) {
		address := hostile(t, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(auth(0x18))
			p.silence()
		})
		_, err := mqtt.Dial(within(t), mqtt.Options{Address: address, ClientID: "c", Auth: one})
		if !errors.Is(err, mqtt.ErrAuthLater) {
			t.Errorf("%v", err)
		}
	})
	t.Run("success before CONNACK", func(t *testing.T) {
		address := hostile(t, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(auth(0))
			p.silence()
		})
		_, err := mqtt.Dial(within(t), mqtt.Options{Address: address, ClientID: "c", Auth: one})
		if !has[*mqtt.MalformedError](err) {
			t.Errorf("%v", err)
		}
	})
	for name, answer := range map[string]string{
		"another method": "\xF0\x06\x00\x04\x15\x00\x01x",
		"another reason": auth(0x19),
		"too many":       auth(0) + auth(0),
	} {
		t.Run(name, func(t *testing.T) {
			address := hostile(t, func(p *peer) {
				p.accept()
				p.read(packets.AUTH)
				p.send(answer)
				p.silence()
			})
			conn := dial(t, address, mqtt.Options{Auth: one})
			err := conn.Reauthenticate(within(t))
			if end := lost(t, conn); !has[*mqtt.MalformedError](end) || err != nil && err != end {
				t.Errorf("%v, %v", err, end)
			}
		})
	}
	t.Run("no verdict", func(t *testing.T) {
		address := hostile(t, func(p *peer) {
			p.accept()
			p.silence()
		})
		conn := dial(t, address, mqtt.Options{Auth: one})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := conn.Reauthenticate(ctx); !errors.Is(err, context.DeadlineExceeded) || conn.Err() != nil {
			t.Errorf("%v, %v", err, conn.Err())
		}
	})
	t.Run("taken over meanwhile", func(t *testing.T) {
		address := hostile(t, func(p *peer) {
			p.accept()
			p.read(packets.AUTH)
			p.send("\xE0\x02\x8E\x00")
			p.silence()
		})
		conn := dial(t, address, mqtt.Options{Auth: one})
		err := conn.Reauthenticate(within(t))
		if code, _ := mqtt.ReasonCode(err); code != mqtt.ReasonTakenOver || has[*mqtt.ReauthError](err) {
			t.Errorf("%v", err)
		}
	})
}
