package mqtt_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/testpeer"
	"github.com/sscli/sscli/internal/wire"
)

// request returns a message that the emulator passes to its store, and to Intercept.
func request(payload string) mqtt.Message {
	return mqtt.Message{Topic: wire.RequestTopic, ResponseTopic: "answers", Correlation: []byte("1"), Payload: []byte(payload)}
}

// granted discards ErrNoSubscribers, which most tests don't care about.
func granted(err error) error {
	if errors.Is(err, mqtt.ErrNoSubscribers) {
		return nil
	}
	return err
}

// ack returns a callback for Publish and the channel that receives its outcome. A second outcome would block
// the callback and the test.
func ack() (func(error), <-chan error) {
	ch := make(chan error, 1)
	return func(err error) { ch <- err }, ch
}

func TestPublishOutcome(t *testing.T) {
	server := emulator.Start(t)
	server.Intercept(func(r emulator.Request) emulator.Action {
		switch string(r.Payload) {
		case "refuse":
			return emulator.Action{Refuse: mqtt.ReasonNotAuthorized}
		case "quota":
			return emulator.Action{Refuse: mqtt.ReasonQuotaExceeded}
		case "cut":
			return emulator.Action{Cut: true}
		case "end":
			return emulator.Action{Disconnect: mqtt.ReasonQuotaExceeded}
		}
		return emulator.Action{NoPuback: true}
	})
	conn := dial(t, server.Addr().String(), mqtt.Options{})
	for payload, code := range map[string]byte{"refuse": 0x87, "quota": 0x97} {
		acked, outcome := ack()
		if err := conn.Publish(t.Context(), request(payload), acked); err != nil {
			t.Fatal(err)
		}
		err := wait(t, "PUBACK", outcome)
		if refusal, ok := errors.AsType[*mqtt.ReasonError](err); !ok || refusal.Packet != "PUBACK" || refusal.Code != code || refusal.Topic != wire.RequestTopic {
			t.Errorf("%s: %v", payload, err)
		}
	}
	acked, outcome := ack()
	if err := conn.Publish(t.Context(), mqtt.Message{Topic: "elsewhere"}, acked); err != nil {
		t.Fatal(err)
	}
	if err := granted(wait(t, "PUBACK", outcome)); err != nil {
		t.Errorf("granted: %v", err)
	}

	// However the broker ends the connection, each outstanding publish gets an outcome.
	for payload, is := range map[string]func(error) bool{
		"cut": is(mqtt.ErrBrokerClosed),
		"end": func(err error) bool {
			code, ok := mqtt.ReasonCode(err)
			return ok && code == mqtt.ReasonQuotaExceeded
		},
	} {
		conn := dial(t, server.Addr().String(), mqtt.Options{ClientID: payload})
		outcomes := make(chan error, 100)
		for range cap(outcomes) - 1 {
			if err := conn.Publish(t.Context(), request("hold"), func(err error) { outcomes <- err }); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Publish(t.Context(), request(payload), func(err error) { outcomes <- err }); err != nil {
			t.Fatal(err)
		}
		for range cap(outcomes) {
			err := wait(t, "the outcome", outcomes)
			if _, ok := errors.AsType[*mqtt.LostError](err); !ok || !is(err) {
				t.Fatalf("%s: %v", payload, err)
			}
		}
		if err := conn.Close(); !is(err) {
			t.Errorf("%s: Close returned %v", payload, err)
		}
		if len(outcomes) > 0 {
			t.Errorf("%s: %d outcomes too many", payload, len(outcomes))
		}
	}
}

// TestReceiveMaximum: many goroutines publish to a broker that allows one message at a time and disconnects a
// client that sends two.
func TestReceiveMaximum(t *testing.T) {
	server := emulator.Start(t, emulator.Options{Limits: emulator.Limits{ReceiveMaximum: 1}})
	var outstanding, most atomic.Int32
	conn := dial(t, server.Addr().String(), mqtt.Options{Tap: func(e mqtt.Event) {
		switch e.Type {
		case "PUBLISH":
			if n := outstanding.Add(1); n > most.Load() {
				most.Store(n)
			}
		case "PUBACK":
			outstanding.Add(-1)
		}
	}})
	if n := conn.Limits().ReceiveMaximum; n != 1 {
		t.Fatalf("receive maximum %d", n)
	}
	var publishers sync.WaitGroup
	for range 10 {
		publishers.Go(func() {
			for range 20 {
				acked, outcome := ack()
				if err := conn.Publish(t.Context(), request("x"), acked); err != nil {
					t.Error(err)
					return
				}
				if err := <-outcome; err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	publishers.Wait()
	if most.Load() != 1 {
		t.Errorf("%d publishes without PUBACK at one time", most.Load())
	}
}

// TestNoRoom: Publish waits for room that never comes.
func TestNoRoom(t *testing.T) {
	server := emulator.Start(t, emulator.Options{Limits: emulator.Limits{ReceiveMaximum: 1}})
	server.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{NoPuback: true} })
	conn := dial(t, server.Addr().String(), mqtt.Options{})
	acked, outcome := ack()
	if err := conn.Publish(t.Context(), request("x"), acked); err != nil {
		t.Fatal(err)
	}
	never := func(error) { t.Error("acked although Publish returned an error") }
	await.State(t, server, func(s emulator.State) bool { return s.Requests == 1 })

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := conn.Publish(ctx, request("y"), never); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want context.DeadlineExceeded", err)
	}
	why := errors.New("why")
	because, cancelBecause := context.WithCancelCause(t.Context())
	cancelBecause(why)
	if err := conn.Publish(because, request("y"), never); err != why {
		t.Errorf("%v, want the context's cause", err)
	}

	waiting := make(chan error, 1)
	go func() { waiting <- conn.Publish(t.Context(), request("z"), never) }()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := wait(t, "the end of Publish", waiting); err != mqtt.ErrClosed {
		t.Errorf("Publish during Close: %v, want ErrClosed", err)
	}
	if err := wait(t, "the outcome", outcome); err != mqtt.ErrClosed {
		t.Errorf("outcome: %v, want ErrClosed", err)
	}
	if n := server.State().Requests; n != 1 {
		t.Errorf("%d requests came, want 1", n)
	}
}

// TestMaxPacketSize: a message that is too large has no effect, neither on the wire nor on the quota.
func TestMaxPacketSize(t *testing.T) {
	const limit = 64
	got := make(chan string, 1)
	address := hostile(t, func(p *peer) {
		p.accept("\x27\x00\x00\x00", string(rune(limit)), "\x21\x00\x01")
		cp := p.read(packets.PUBLISH)
		got <- string(cp.Content.(*packets.Publish).Payload)
		p.send(puback(cp.PacketID(), 0))
		p.silence()
	})
	conn := dial(t, address, mqtt.Options{})
	for range 3 {
		err := conn.Publish(within(t), mqtt.Message{Topic: "t", Payload: make([]byte, limit)}, func(error) { t.Error("acked") })
		if tooLarge, ok := errors.AsType[*mqtt.TooLargeError](err); !ok || *tooLarge != (mqtt.TooLargeError{Size: limit + 10, Max: limit}) {
			t.Fatalf("%v, want a TooLargeError", err)
		}
	}
	acked, outcome := ack()
	if err := conn.Publish(within(t), mqtt.Message{Topic: "t", Payload: bytes.Repeat([]byte("x"), limit-10)}, acked); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, "PUBACK", outcome); err != nil {
		t.Error(err)
	}
	if payload := wait(t, "the message", got); payload != strings.Repeat("x", limit-10) {
		t.Errorf("the peer got %q", payload)
	}
	err := conn.Subscribe(within(t), strings.Repeat("x", limit))
	if _, ok := errors.AsType[*mqtt.TooLargeError](err); !ok {
		t.Errorf("Subscribe: %v, want a TooLargeError", err)
	}
}

// TestKeepAlive uses brokers that send little or nothing. A peer that reads gets a PINGREQ after each
// PINGRESP.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		keepAlive time.Duration
		script    func(*peer)
		want      error
	}{
		{"silent broker", time.Second, func(p *peer) {
			p.accept()
			p.read(packets.PINGREQ)
			p.silence()
		}, mqtt.ErrKeepAlive},
		{"server keep alive", 0, func(p *peer) {
			p.accept("\x13\x00\x01")
			p.read(packets.PINGREQ)
			p.silence()
		}, mqtt.ErrKeepAlive},
		{"a broker that answers", time.Second, func(p *peer) {
			p.accept()
			for range 3 {
				p.read(packets.PINGREQ)
				p.send("\xD0\x00")
			}
			p.send("\xE0\x01\x8D")
			p.silence()
		}, &mqtt.ReasonError{Packet: "DISCONNECT", Code: 0x8D}},
		{"a message that takes its time", time.Second, func(p *peer) {
			p.accept()
			for _, b := range []byte("\x30\x06\x00\x01") {
				p.read(packets.PINGREQ)
				p.send(string(b))
			}
			p.send("t\x00xx\xE0\x00")
			p.silence()
		}, &mqtt.ReasonError{Packet: "DISCONNECT"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := piped(t, test.script)
				o.KeepAlive = test.keepAlive
				err := errors.Unwrap(lost(t, dial(t, "", o)))
				if want, ok := test.want.(*mqtt.ReasonError); ok {
					if got, ok := err.(*mqtt.ReasonError); !ok || *got != *want {
						t.Errorf("%v, want %v", err, want)
					}
				} else if err != test.want {
					t.Errorf("%v, want %v", err, test.want)
				}
			})
		})
	}
}

// TestNoKeepAlive: a broker can disable keep-alive.
func TestNoKeepAlive(t *testing.T) {
	address := hostile(t, func(p *peer) {
		if cp := p.read(packets.CONNECT); cp.Content.(*packets.Connect).KeepAlive != 65535 {
			t.Errorf("%s", cp)
		}
		p.send(connack(0, "\x13\x00\x00"))
		p.silence()
	})
	conn := dial(t, address, mqtt.Options{KeepAlive: 24 * time.Hour})
	if d := conn.Limits().KeepAlive; d != 0 {
		t.Errorf("keep-alive %v", d)
	}
	if _, err := mqtt.Dial(t.Context(), mqtt.Options{Address: address, KeepAlive: time.Millisecond}); err == nil {
		t.Error("keep-alive 1ms was accepted")
	}
}

func TestConnectOptions(t *testing.T) {
	address := hostile(t, func(p *peer) {
		got := p.read(packets.CONNECT).Content.(*packets.Connect)
		if got.ClientID != "c" || got.Username != "u" || string(got.Password) != "p" || !got.CleanStart || got.KeepAlive != 60 ||
			*got.Properties.SessionExpiryInterval != 0 || *got.Properties.ReceiveMaximum != 7 || *got.Properties.MaximumPacketSize != 4096 {
			t.Errorf("%s", got)
		}
		p.send(connack(0))
		p.silence()
	})
	conn := dial(t, address, mqtt.Options{ClientID: "c", Username: "u", Password: []byte("p"), ReceiveMaximum: 7, MaxPacketSize: 4096})
	if got, want := conn.Limits(), (mqtt.Limits{ReceiveMaximum: 65535, MaxPacketSize: 268_435_460, KeepAlive: time.Minute}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	long := strings.Repeat("x", 65536)
	for want, o := range map[string]mqtt.Options{
		"client id":    {ClientID: long},
		"user name":    {Username: long},
		"password":     {Password: []byte(long)},
		"topic filter": {Subscribe: []string{"a", long}},
	} {
		o.Address = hostile(t, (*peer).silence)
		if _, err := mqtt.Dial(within(t), o); err == nil || !strings.HasSuffix(err.Error(), want+" of 65536 bytes: MQTT allows at most 65535") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestOrder: messages are delivered in the order of the wire, and those with QoS above 0 are acknowledged
// afterwards, in the same order.
func TestOrder(t *testing.T) {
	const n = 300
	answered := make(chan []uint16, 1)
	address := hostile(t, func(p *peer) {
		p.accept()
		var wire strings.Builder
		for i := range n {
			wire.WriteString(publish("t", fmt.Sprint(i), uint16(i%3))) // identifier 0 stands for QoS 0
		}
		p.send(wire.String())
		var ids []uint16
		for range n - n/3 {
			ids = append(ids, p.read(packets.PUBACK).PacketID())
		}
		answered <- ids
		p.silence()
	})
	got := make(chan string, n)
	conn := dial(t, address, mqtt.Options{OnMessage: func(m mqtt.Message) { got <- string(m.Payload) }})
	for i := range n {
		if payload := wait(t, "the message", got); payload != fmt.Sprint(i) {
			t.Fatalf("got %s, want %d", payload, i)
		}
	}
	for i, id := range wait(t, "the acknowledgements", answered) {
		if want := uint16(i%2 + 1); id != want {
			t.Fatalf("acknowledgement %d is for %d, want %d", i, id, want)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestClose: everything published before DISCONNECT arrives, even if the broker acknowledges and reads
// slowly.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, size = 3, 2 << 20 // the peer reads one; one is being written, and one is in the buffer, which is full then
		closing := make(chan struct{})
		got := make(chan byte, 1)
		o := piped(t, func(p *peer) {
			p.accept()
			p.send(puback(p.read(packets.PUBLISH).PacketID(), 0))
			<-closing
			for range n - 1 {
				p.send(puback(p.read(packets.PUBLISH).PacketID(), 0))
			}
			got <- p.read(packets.DISCONNECT).Content.(*packets.Disconnect).ReasonCode
		})
		o.Tap = func(e mqtt.Event) {
			if e.Type == "DISCONNECT" {
				close(closing)
			}
		}
		conn := dial(t, "", o)
		outcomes := make(chan error, n)
		for range n {
			if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t", Payload: make([]byte, size)}, func(err error) { outcomes <- err }); err != nil {
				t.Fatal(err)
			}
		}
		if err := wait(t, "the first PUBACK", outcomes); err != nil {
			t.Error(err)
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if err := conn.Close(); err != nil {
			t.Errorf("once more: %v", err)
		}
		if code := wait(t, "DISCONNECT", got); code != 0 {
			t.Errorf("DISCONNECT 0x%02X", code)
		}
		for range n - 1 {
			if err := wait(t, "the outcome", outcomes); err != nil && err != mqtt.ErrClosed {
				t.Error(err)
			}
		}
		if err := conn.Err(); err != mqtt.ErrClosed {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

// A timelessConn is a connection without deadlines, such as one through an SSH server.
type timelessConn struct{ net.Conn }

func (timelessConn) SetDeadline(time.Time) error { return errors.New("deadlines are not supported") }
func (timelessConn) SetReadDeadline(time.Time) error {
	return errors.New("deadlines are not supported")
}
func (timelessConn) SetWriteDeadline(time.Time) error {
	return errors.New("deadlines are not supported")
}

// TestCloseWithoutDeadlines: Close ends although the broker does not read and the connection has no deadlines.
func TestCloseWithoutDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := piped(t, func(p *peer) {
			p.accept()
			<-t.Context().Done()
		})
		dialPiped := o.Dial
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := dialPiped(ctx, network, address)
			return timelessConn{nc}, err
		}
		conn := dial(t, "", o)
		begun := time.Now()
		conn.Close() // the error is not the point
		if d := time.Since(begun); d > 2*time.Second {
			t.Errorf("Close took %v", d)
		}
	})
}

// TestCloseAtOnce: Close races with the broker's close of the connection.
func TestCloseAtOnce(t *testing.T) {
	server := emulator.Start(t)
	for i := range 50 {
		conn := dial(t, server.Addr().String(), mqtt.Options{ClientID: fmt.Sprint(i)})
		if i%2 == 0 {
			if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t"}, func(error) {}); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCloseUnread: Close returns even if the broker reads nothing, also over TLS.
func TestCloseUnread(t *testing.T) {
	authority := newCA(t)
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": authority.server()} {
		t.Run(name, func(t *testing.T) {
			address := hostile(t, func(p *peer) {
				if config != nil {
					p.Conn = tls.Server(p.Conn, config)
				}
				p.accept()
				<-t.Context().Done()
			})
			o := mqtt.Options{}
			if config != nil {
				o.TLS = trust(t, authority)
			}
			conn := dial(t, address, o)
			acked, outcome := ack()
			if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t", Payload: make([]byte, 32<<20)}, acked); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			err := conn.Close()
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("Close took %v", took)
			}
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("Close: %v, want that it could not be written", err)
			}
			if got := wait(t, "the outcome", outcome); got != err {
				t.Errorf("outcome %v, want %v", got, err)
			}
		})
	}
}

// TestCloseUnanswered: after DISCONNECT, the broker neither acknowledges nor closes.
func TestCloseUnanswered(t *testing.T) {
	address := hostile(t, func(p *peer) {
		p.accept()
		p.read(packets.PUBLISH)
		p.read(packets.DISCONNECT)
		<-t.Context().Done()
	})
	conn := dial(t, address, mqtt.Options{})
	acked, outcome := ack()
	if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t"}, acked); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("Close took %v", took)
	}
	if err := wait(t, "the outcome", outcome); err != mqtt.ErrClosed {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// TestLastWord: the broker refuses and closes while the client writes. The error is the broker's reason, not
// the failed write.
func TestLastWord(t *testing.T) {
	reading, reset := make(chan struct{}), make(chan struct{})
	address := hostile(t, func(p *peer) {
		p.accept()
		p.send(publish("t", "", 0), "\xE0\x01\x95")
		<-reading // the client now has the DISCONNECT in its buffer
		p.Conn.(*net.TCPConn).SetLinger(0)
		p.Close()
		close(reset)
	})
	release := make(chan struct{})
	conn := dial(t, address, mqtt.Options{OnMessage: func(mqtt.Message) {
		close(reading)
		<-release
	}})
	<-reset
	acked, outcome := ack()
	if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t"}, acked); err != nil {
		t.Fatal(err)
	}
	select {
	case <-conn.Done():
		t.Errorf("the connection ended before the reader was heard: %v", conn.Err())
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	err := wait(t, "the outcome", outcome)
	if code, ok := mqtt.ReasonCode(err); !ok || code != mqtt.ReasonPacketTooLarge {
		t.Errorf("%v, want DISCONNECT 0x95", err)
	}
}

// TestTap: the trace is complete, because its sizes add up to the bytes on the wire, and it contains no
// password.
func TestTap(t *testing.T) {
	const password = "correct horse"
	server := emulator.Start(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": password})})
	counted := make(chan [2]int64, 1) // bytes sent and received
	relay := testpeer.Serve(t, func(_ int, nc net.Conn) {
		var n [2]int64
		testpeer.Relay(nc, server.Addr().String(),
			func(to, from net.Conn) { n[0], _ = io.Copy(to, from) },
			func(to, from net.Conn) { n[1], _ = io.Copy(to, from) })
		counted <- n
	})
	var mu sync.Mutex
	var sent, received int64
	var seen strings.Builder
	count := make(map[string]int)
	messages := make(chan mqtt.Message, 100)
	conn := dial(t, relay, mqtt.Options{
		ClientID: "c", Username: "ann", Password: []byte(password), Subscribe: []string{"t/+"},
		OnMessage: func(m mqtt.Message) { messages <- m },
		Tap: func(e mqtt.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Sent {
				sent += int64(e.Size)
				count["> "+e.Type]++
			} else {
				received += int64(e.Size)
				count["< "+e.Type]++
			}
			fmt.Fprintf(&seen, "%+v %+v\n", e, e.Message)
		},
	})
	const n = 20
	for i := range n {
		acked, outcome := ack()
		m := mqtt.Message{Topic: fmt.Sprint("t/", i), Payload: bytes.Repeat([]byte("x"), i*100), User: []mqtt.Property{{Name: "a", Value: "b"}}}
		if err := conn.Publish(t.Context(), m, acked); err != nil {
			t.Fatal(err)
		}
		if err := wait(t, "PUBACK", outcome); err != nil {
			t.Fatal(err)
		}
		if got := wait(t, "the message", messages); got.Topic != m.Topic || !bytes.Equal(got.Payload, m.Payload) {
			t.Errorf("%+v", got)
		}
	}
	if err := conn.Subscribe(within(t), "u", "v/#"); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	relayed := wait(t, "the end of the connection", counted)
	if traced := [2]int64{sent, received}; traced != relayed {
		t.Errorf("the trace has %d bytes sent and received, the wire %d", traced, relayed)
	}
	want := map[string]int{
		"> CONNECT": 1, "> SUBSCRIBE": 2, "> PUBLISH": n, "> PUBACK": n, "> DISCONNECT": 1,
		"< CONNACK": 1, "< SUBACK": 2, "< PUBLISH": n, "< PUBACK": n,
	}
	if got := fmt.Sprint(count); got != fmt.Sprint(want) {
		t.Errorf("got  %s\nwant %s", got, fmt.Sprint(want))
	}
	if strings.Contains(seen.String(), password) {
		t.Error("the trace tells the password")
	}
	for _, detail := range []string{`client id "c", clean start true, keep alive 60s, user name "ann", password`, `"t/+" QoS 1`, "0x01 granted QoS 1", "receive maximum"} {
		if !strings.Contains(seen.String(), detail) {
			t.Errorf("the trace does not tell %s", detail)
		}
	}
}

// TestBothBusy: both sides send 5 MiB, and the peer reads only after it has sent everything.
func TestBothBusy(t *testing.T) {
	const size = 5 << 20
	payload := strings.Repeat("0123456789abcdef", size/16)
	address := hostile(t, func(p *peer) {
		p.accept()
		p.send(publish("t", payload, 1))
		cp := p.read(packets.PUBLISH)
		if string(cp.Content.(*packets.Publish).Payload) != payload {
			t.Error("another payload came")
		}
		p.read(packets.PUBACK)
		p.send(puback(cp.PacketID(), 0))
		p.silence()
	})
	messages := make(chan mqtt.Message, 1)
	published := make(chan struct{})
	conn := dial(t, address, mqtt.Options{OnMessage: func(m mqtt.Message) { messages <- m }, Tap: func(e mqtt.Event) {
		if e.Type == "PUBLISH" && !e.Sent {
			<-published // so that the PUBLISH comes before the PUBACK
		}
	}})
	acked, outcome := ack()
	if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t", Payload: []byte(payload)}, acked); err != nil {
		t.Fatal(err)
	}
	close(published)
	if m := wait(t, "the message", messages); string(m.Payload) != payload {
		t.Error("another payload came")
	}
	if err := wait(t, "PUBACK", outcome); err != nil {
		t.Error(err)
	}
}

// TestLarge: messages with a Large arrive whole and in order among others, and their size is limited.
func TestLarge(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<16)
	server := emulator.Start(t)
	messages := make(chan string, 7)
	conn := dial(t, server.Addr().String(), mqtt.Options{Subscribe: []string{"t"}, OnMessage: func(m mqtt.Message) { messages <- string(m.Payload) }})
	var want []string
	outcomes := make(chan error, cap(messages))
	for i := range cap(messages) {
		m := mqtt.Message{Topic: "t", Payload: fmt.Append(nil, "message ", i)}
		want = append(want, string(m.Payload))
		if i%2 == 1 {
			m.Large, m.LargeAt = long, i
			want[i] = want[i][:i] + long + want[i][i:]
		}
		if err := conn.Publish(t.Context(), m, func(err error) { outcomes <- err }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range want {
		if got := wait(t, "the message", messages); got != want[i] {
			t.Errorf("message %d has %d bytes, not those that were sent", i, len(got))
		}
		if err := wait(t, "PUBACK", outcomes); err != nil {
			t.Error(err)
		}
	}
	huge := mqtt.Message{Topic: "t", Large: strings.Repeat(long, 256)}
	err := conn.Publish(t.Context(), huge, nil)
	if tooLarge, ok := errors.AsType[*mqtt.TooLargeError](err); !ok || tooLarge.Size < len(huge.Large) {
		t.Errorf("a Large of %d bytes: %v", len(huge.Large), err)
	}
}

// TestLargeMemory: a Large is not copied to be sent.
func TestLargeMemory(t *testing.T) {
	const size = 64 << 20
	address := hostile(t, func(p *peer) {
		p.accept()
		io.CopyN(io.Discard, p, 1+4+2+1+2+1+2+size) // type, length, topic, packet id, properties, payload
		p.send(puback(1, 0))
		p.silence()
	})
	conn := dial(t, address, mqtt.Options{})
	m := mqtt.Message{Topic: "t", Large: strings.Repeat("v", size)}
	acked, outcome := ack()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := conn.Publish(t.Context(), m, acked); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, "PUBACK", outcome); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > size/2 {
		t.Errorf("%d bytes were allocated to send %d", took, size)
	}
}

// TestBigEcho sends 5 MiB to the emulator and receives them several times at once, with a client that reads
// slowly.
func TestBigEcho(t *testing.T) {
	const n, size = 4, 5 << 20
	server := emulator.Start(t)
	published := make(chan struct{})
	messages := make(chan mqtt.Message, n)
	conn := dial(t, server.Addr().String(), mqtt.Options{Subscribe: []string{"t"}, OnMessage: func(m mqtt.Message) {
		<-published
		messages <- m
	}})
	outcomes := make(chan error, n)
	for i := range n {
		if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t", Payload: bytes.Repeat([]byte{byte(i)}, size)}, func(err error) { outcomes <- err }); err != nil {
			t.Fatal(err)
		}
	}
	close(published)
	for i := range n {
		if m := wait(t, "the message", messages); len(m.Payload) != size || m.Payload[0] != byte(i) || m.Payload[size-1] != byte(i) {
			t.Errorf("message %d has %d bytes", i, len(m.Payload))
		}
		if err := wait(t, "PUBACK", outcomes); err != nil {
			t.Error(err)
		}
	}
}

func TestSubscribe(t *testing.T) {
	asked := make(chan struct{})
	address := hostile(t, func(p *peer) {
		p.accept()
		id := p.read(packets.SUBSCRIBE).PacketID()
		p.send("\x90\x05" + string([]byte{byte(id >> 8), byte(id)}) + "\x00\x01\x8F")
		p.read(packets.SUBSCRIBE)
		close(asked)
		p.silence()
	})
	conn := dial(t, address, mqtt.Options{})
	err := conn.Subscribe(within(t), "a", "b")
	if refusal, ok := errors.AsType[*mqtt.ReasonError](err); !ok || *refusal != (mqtt.ReasonError{Packet: "SUBACK", Code: 0x8F, Topic: "b"}) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := conn.Subscribe(ctx, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestOutcomesAtClose: when several goroutines publish while Close runs, each publish has exactly one
// outcome, or Publish returned an error.
func TestOutcomesAtClose(t *testing.T) {
	server := emulator.Start(t)
	for range 10 {
		conn := dial(t, server.Addr().String(), mqtt.Options{})
		var published, outcomes atomic.Int64
		var publishers sync.WaitGroup
		started := make(chan struct{}, 4)
		for range cap(started) {
			publishers.Go(func() {
				for {
					if err := conn.Publish(t.Context(), request("x"), func(error) { outcomes.Add(1) }); err != nil {
						if err != mqtt.ErrClosed {
							t.Error(err)
						}
						return
					}
					published.Add(1)
					select {
					case started <- struct{}{}:
					default:
					}
				}
			})
		}
		<-started
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		publishers.Wait()
		if published.Load() != outcomes.Load() {
			t.Errorf("%d messages were published, %d had an outcome", published.Load(), outcomes.Load())
		}
	}
}

// TestQueue: queued messages share a write, Queue does not wait, and OnDrained is called once after the
// messages of one read.
func TestQueue(t *testing.T) {
	address := hostile(t, func(p *peer) {
		p.accept("\x21\x00\x02") // Receive Maximum
		first, second := p.read(packets.PUBLISH), p.read(packets.PUBLISH)
		p.send(publish("t", "one", 1) + publish("t", "two", 2) + puback(first.PacketID(), 0) + puback(second.PacketID(), 0))
		p.silence()
	})
	var messages []string
	drained := make(chan int, 100)
	conn := dial(t, address, mqtt.Options{
		OnPublication: func(m *mqtt.Publication) { messages = append(messages, string(m.Payload)) },
		OnDrained:     func() (idle bool) { drained <- len(messages); return false },
	})
	outcome := make(chan error, 3)
	acked := func(err error) { outcome <- err }
	m := request("x")
	for range conn.Limits().ReceiveMaximum {
		if err := conn.Queue(&m, acked); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Queue(&m, acked); err != mqtt.ErrFull {
		t.Errorf("beyond the Receive Maximum: %v, want ErrFull", err)
	}
	conn.Flush()
	for n := 0; n < 2; {
		if n = wait(t, "the messages", drained); n == 1 {
			t.Error("OnDrained was called between two messages of one read")
		}
	}
	for range 2 {
		if err := wait(t, "PUBACK", outcome); err != nil {
			t.Error(err)
		}
	}
	if err := conn.Queue(&m, acked); err != nil {
		t.Errorf("after two PUBACKs: %v", err)
	}
}

func BenchmarkPublish(b *testing.B) {
	server := emulator.Start(b)
	conn, err := mqtt.Dial(b.Context(), mqtt.Options{Address: server.Addr().String(), ClientID: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	outcome := make(chan error, 1)
	m := mqtt.Message{Topic: "t", Payload: make([]byte, 287)}
	b.ReportAllocs()
	for b.Loop() {
		if err := conn.Publish(b.Context(), m, func(err error) { outcome <- err }); err != nil {
			b.Fatal(err)
		}
		if err := <-outcome; err != nil {
			b.Fatal(err)
		}
	}
}
