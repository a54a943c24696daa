package mqtt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/mqtt"
)

// early returns a function for an EarlyMessage of this size, and a channel that receives its outcome.
func early(size int, answered <-chan struct{}) (func() mqtt.EarlyMessage, chan error) {
	acked := make(chan error, 1)
	return func() mqtt.EarlyMessage {
		m := mqtt.Message{Topic: "t", Payload: bytes.Repeat([]byte("x"), size)}
		return mqtt.EarlyMessage{Message: m, Acked: func(err error) { acked <- err }, Answered: answered}
	}, acked
}

// TestEarly checks when packets are sent, and the outcome of the message.
func TestEarly(t *testing.T) {
	suback := "\x90\x04\x00\x01\x00\x01"
	token := mqtt.Auth{Method: "K8S-SAT", Data: func() ([]byte, error) { return []byte("token"), nil }}
	for _, test := range []struct {
		name   string
		o      mqtt.Options
		size   int
		script func(*peer)
		want   string // error passed to Acked
		dial   string // error returned by Dial
	}{
		{"with CONNECT", mqtt.Options{}, 1, func(p *peer) {
			p.read(packets.CONNECT)
			p.read(packets.SUBSCRIBE)
			p.read(packets.PUBLISH)
			p.send(connack(0), suback, puback(2, 0))
		}, "<nil>", "<nil>"},
		{"acknowledged before the subscription is", mqtt.Options{}, 1, func(p *peer) {
			p.read(packets.CONNECT)
			p.read(packets.SUBSCRIBE)
			p.read(packets.PUBLISH)
			p.send(connack(0), puback(2, 0), suback)
		}, "<nil>", "<nil>"},
		{"with SUBSCRIBE", mqtt.Options{AwaitConnack: true}, 1, func(p *peer) {
			p.accept()
			p.read(packets.SUBSCRIBE)
			p.read(packets.PUBLISH)
			p.send(suback, puback(2, 0))
		}, "<nil>", "<nil>"},
		{"with a token", mqtt.Options{Auth: token}, 1, func(p *peer) {
			p.accept()
			p.read(packets.SUBSCRIBE)
			p.read(packets.PUBLISH)
			p.send(suback, puback(2, 0))
		}, "<nil>", "<nil>"},
		{"refused", mqtt.Options{}, 1, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(connack(0), suback, puback(2, 0x87))
		}, `PUBACK 0x87 not authorized for "t"`, "<nil>"},
		{"a refused login", mqtt.Options{}, 1, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(connack(0x86))
		}, "CONNACK 0x86 bad user name or password", "MQTT CONNECT to BROKER: CONNACK 0x86 bad user name or password"},
		{"a refused subscription", mqtt.Options{}, 1, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(connack(0), "\x90\x04\x00\x01\x00\x87")
		}, "the connection was closed", `MQTT SUBSCRIBE at BROKER: SUBACK 0x87 not authorized for "s"`},
		{"QoS 0 granted", mqtt.Options{}, 1, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(connack(0), "\x90\x04\x00\x01\x00\x00")
		}, "the connection was closed", "MQTT SUBSCRIBE at BROKER: the broker grants QoS 0 only, the store requires QoS 1"},
		{"QoS 0 at most", mqtt.Options{}, 1, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(connack(0, "\x24\x00"))
		}, "connection lost: the broker grants QoS 0 only, the store requires QoS 1", "MQTT CONNECT to BROKER: connection lost: the broker grants QoS 0 only, the store requires QoS 1"},
		{"as large as allowed", mqtt.Options{}, 90, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(connack(0, "\x27\x00\x00\x00\x64", "\x21\x00\x01"), suback, puback(2, 0))
		}, "<nil>", "<nil>"},
		{"larger than allowed", mqtt.Options{}, 91, func(p *peer) {
			p.read(packets.CONNECT)
			p.send(connack(0, "\x27\x00\x00\x00\x64", "\x21\x00\x01"), suback, "\xE0\x01\x95")
		}, "packet of 101 bytes is larger than the 100 bytes that the broker accepts", ""},
		{"larger than allowed, with a token", mqtt.Options{Auth: token}, 91, func(p *peer) {
			p.accept("\x27\x00\x00\x00\x64")
			p.read(packets.SUBSCRIBE)
			p.send(suback)
		}, "packet of 101 bytes is larger than the 100 bytes that the broker accepts", "<nil>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address := hostile(t, func(p *peer) {
				test.script(p)
				p.silence()
			})
			o := test.o
			var acked chan error
			o.Early, acked = early(test.size, nil)
			o.Address, o.ClientID, o.Subscribe = address, "c", []string{"s"}
			conn, err := mqtt.Dial(within(t), o)
			if got := strings.ReplaceAll(fmt.Sprint(err), address, "BROKER"); got != test.dial && test.dial != "" {
				t.Errorf("Dial: %s\nwant %s", got, test.dial)
			}
			if got := fmt.Sprint(wait(t, "the outcome", acked)); got != test.want {
				t.Errorf("Acked: %s\nwant %s", got, test.want)
			}
			if err == nil {
				conn.Close()
			}
		})
	}
}

// TestEarlyReceiveMaximum: the early message counts towards Receive Maximum.
func TestEarlyReceiveMaximum(t *testing.T) {
	t.Parallel()
	acknowledge := make(chan struct{})
	address := hostile(t, func(p *peer) {
		p.read(packets.CONNECT)
		p.read(packets.PUBLISH)
		p.send(connack(0, "\x21\x00\x01"))
		<-acknowledge
		p.send(puback(1, 0))
		p.read(packets.PUBLISH)
		p.silence()
	})
	o := mqtt.Options{}
	var acked chan error
	o.Early, acked = early(1, nil)
	conn := dial(t, address, o)
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := conn.Publish(short, mqtt.Message{Topic: "t"}, func(error) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second message before the PUBACK of the first: %v", err)
	}
	close(acknowledge)
	if err := wait(t, "the outcome", acked); err != nil {
		t.Error(err)
	}
	if err := conn.Publish(within(t), mqtt.Message{Topic: "t"}, func(error) {}); err != nil {
		t.Error(err)
	}
}

// TestAnswered: Dial returns once the message is answered, even without SUBACK.
func TestAnswered(t *testing.T) {
	t.Parallel()
	address := hostile(t, func(p *peer) {
		p.read(packets.CONNECT)
		p.send(connack(0), publish("s", "answer", 0))
		p.silence()
	})
	answered := make(chan struct{})
	o := mqtt.Options{Subscribe: []string{"s"}, OnMessage: func(mqtt.Message) { close(answered) }}
	o.Early, _ = early(1, answered)
	if err := dial(t, address, o).Err(); err != nil {
		t.Error(err)
	}
}

// TestAwaitConnack: with AwaitConnack, nothing follows CONNECT before CONNACK.
func TestAwaitConnack(t *testing.T) {
	t.Parallel()
	address := hostile(t, func(p *peer) {
		p.read(packets.CONNECT)
		// Packets sent with CONNECT would arrive within this time, or be in the buffer already.
		p.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if n, _ := p.Read(make([]byte, 1)); n > 0 {
			t.Error("something was sent before CONNACK")
		}
		p.SetReadDeadline(time.Time{})
		p.send(connack(0))
		p.read(packets.SUBSCRIBE)
		p.send("\x90\x04\x00\x01\x00\x01")
		p.silence()
	})
	dial(t, address, mqtt.Options{AwaitConnack: true, Subscribe: []string{"s"}})
}

// TestSlowBroker: requests that wait for a broker that does not read are limited.
func TestSlowBroker(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	address := hostile(t, func(p *peer) {
		p.accept()
		<-read
		p.silence()
	})
	conn := dial(t, address, mqtt.Options{})
	payload := make([]byte, 256<<10)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var sent int
	var err error
	for err == nil && sent < 1000 {
		if err = conn.Publish(short, mqtt.Message{Topic: "t", Payload: payload}, func(error) {}); err == nil {
			sent++
		}
	}
	// The kernel buffers some megabytes, the connection two.
	if !errors.Is(err, context.DeadlineExceeded) || sent > 100 {
		t.Errorf("%d messages of 256 KiB, %v", sent, err)
	}
	close(read)
	if err := conn.Publish(within(t), mqtt.Message{Topic: "t", Payload: payload}, func(error) {}); err != nil {
		t.Errorf("when the broker reads on: %v", err)
	}
}

// TestAcknowledgementsAreBounded: a broker sends more messages than allowed while it reads no
// acknowledgement.
func TestAcknowledgementsAreBounded(t *testing.T) {
	t.Parallel()
	address := hostile(t, func(p *peer) {
		p.accept()
		var b strings.Builder
		for id := range 200 {
			b.WriteString(publish("t", "", uint16(id+1)))
		}
		for {
			if _, err := p.Write([]byte(b.String())); err != nil {
				return
			}
		}
	})
	// A broker that reads nothing would fill the kernel's buffers first.
	conn := dial(t, address, mqtt.Options{ReceiveMaximum: 10})
	malformed, ok := errors.AsType[*mqtt.MalformedError](lost(t, conn))
	if !ok || malformed.Why != "more than 10 messages without PUBACK" {
		t.Errorf("%v", conn.Err())
	}
}

// TestPingGoesFirst: a PINGREQ overtakes the messages that wait for a slow broker.
func TestPingGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pinging, stop := context.WithCancel(t.Context())
		defer stop()
		after := make(chan int, 1)
		o := piped(t, func(p *peer) {
			p.accept()
			<-pinging.Done() // the peer begins to read only now
			for pinged, n := false, 0; ; {
				cp, err := packets.ReadPacket(p)
				switch {
				case err != nil, cp.Type == packets.DISCONNECT:
					after <- n
					return
				case cp.Type == packets.PINGREQ:
					pinged = true
				case pinged:
					n++
				}
			}
		})
		o.KeepAlive, o.Tap = time.Second, func(e mqtt.Event) {
			if e.Type == "PINGREQ" {
				stop()
			}
		}
		conn := dial(t, "", o)
		for err := error(nil); err == nil; { // until the connection's buffer is full, and then until the PINGREQ
			err = conn.Publish(pinging, mqtt.Message{Topic: "t", Payload: make([]byte, 300<<10)}, func(error) {})
		}
		conn.Close()
		if n := wait(t, "the end", after); n == 0 {
			t.Error("the PINGREQ came after all messages")
		}
	})
}
