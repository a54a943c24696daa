package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/mqtt"
)

// TestHostileLogin checks the errors of Dial with brokers that don't grant what it requests. All of them read
// CONNECT and SUBSCRIBE first.
func TestHostileLogin(t *testing.T) {
	granted := connack(0)
	for _, test := range []struct {
		name  string
		wire  string
		stage mqtt.Stage
		want  string // part of the error after stage and address
	}{
		{"closes at once", "", mqtt.StageConnect, "connection lost: the broker closed the connection"},
		{"closes within CONNACK", granted[:3], mqtt.StageConnect, "connection lost: the broker closed the connection"},
		{"closes after CONNACK", granted, mqtt.StageSubscribe, "connection lost: the broker closed the connection"},
		{"five-digit length", "\x20\xFF\xFF\xFF\xFF\x01", mqtt.StageConnect, "connection lost: malformed packet from the broker: a length has more than four digits"},
		{"type 0", "\x00\x00", mqtt.StageConnect, "connection lost: malformed packet from the broker: packet type 0 does not exist"},
		{"PUBLISH before CONNACK", publish("t", "", 1), mqtt.StageConnect, "connection lost: malformed packet from the broker: PUBLISH before CONNACK"},
		{"SUBACK before CONNACK", "\x90\x04\x00\x01\x00\x01", mqtt.StageConnect, "connection lost: malformed packet from the broker: SUBACK before CONNACK"},
		{"AUTH", "\xF0\x00", mqtt.StageConnect, "connection lost: malformed packet from the broker: AUTH before CONNACK"},
		{"DISCONNECT before CONNACK", "\xE0\x01\x89", mqtt.StageConnect, "connection lost: DISCONNECT 0x89 server busy"},
		{"receive maximum 0", connack(0, "\x21\x00\x00"), mqtt.StageConnect, "connection lost: malformed packet from the broker: receive maximum 0 in CONNACK"},
		{"maximum packet size 0", connack(0, "\x27\x00\x00\x00\x00"), mqtt.StageConnect, "connection lost: malformed packet from the broker: maximum packet size 0 in CONNACK"},
		{"maximum QoS 0", connack(0, "\x24\x00"), mqtt.StageConnect, "connection lost: the broker grants QoS 0 only, the store requires QoS 1"},
		{"reason code 1", connack(1), mqtt.StageConnect, "connection lost: malformed packet from the broker: reason code 0x01 in CONNACK"},
		{"MQTT 3.1.1 only", "\x20\x02\x00\x01", mqtt.StageConnect, "CONNACK 0x84 unsupported protocol version"},
		{"properties beyond the packet", "\x20\x03\x00\x00\x09", mqtt.StageConnect, "connection lost: malformed packet from the broker: CONNACK of 3 bytes: properties of 9 bytes where 0 are left"},
		{"more reason codes than filters", granted + "\x90\x05\x00\x01\x00\x01\x01", mqtt.StageSubscribe, "connection lost: malformed packet from the broker: SUBACK with 2 reason codes where a SUBACK with 1 was due"},
		{"no reason code", granted + "\x90\x03\x00\x01\x00", mqtt.StageSubscribe, "connection lost: malformed packet from the broker: SUBACK with 0 reason codes where a SUBACK with 1 was due"},
		{"PUBACK for SUBSCRIBE", granted + puback(1, 0), mqtt.StageSubscribe, "connection lost: malformed packet from the broker: PUBACK with 1 reason codes where a SUBACK with 1 was due"},
		{"subscription refused", granted + "\x90\x04\x00\x01\x00\x87", mqtt.StageSubscribe, `SUBACK 0x87 not authorized for "answers"`},
		{"HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", mqtt.StageConnect, "connection lost: malformed packet from the broker: it begins like HTTP"},
		{"TLS alert", "\x15\x03\x01\x00\x02\x02\x46", mqtt.StageConnect, "connection lost: malformed packet from the broker: it is a TLS alert, so this port expects TLS"},
		{"SSH", "SSH-2.0-OpenSSH_9.6\r\n", mqtt.StageConnect, "connection lost: malformed packet from the broker: flags 0x3 of PUBREC"},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := hostile(t, func(p *peer) {
				p.read(packets.CONNECT)
				p.read(packets.SUBSCRIBE)
				p.send(test.wire)
				if strings.Contains(test.want, "closed") {
					return
				}
				p.silence()
			})
			conn, err := mqtt.Dial(within(t), mqtt.Options{Address: address, ClientID: "c", Subscribe: []string{"answers"}})
			if err == nil {
				t.Fatal("a connection", conn.Close())
			}
			dialError, ok := errors.AsType[*mqtt.DialError](err)
			if !ok || dialError.Stage != test.stage || dialError.Address != address || dialError.Err.Error() != test.want {
				t.Errorf("got  %v\nwant %s %s: %s", err, test.stage, address, test.want)
			}
		})
	}
}

// TestRefusedLogin: a broker refuses CONNECT while SUBSCRIBE is in transit.
func TestRefusedLogin(t *testing.T) {
	for code := byte(0x80); code <= 0x9F; code++ {
		address := hostile(t, func(p *peer) {
			p.read(packets.CONNECT)
			p.read(packets.SUBSCRIBE)
			p.send(connack(code, "\x1F\x00\x03why"))
		})
		_, err := mqtt.Dial(within(t), mqtt.Options{Address: address, ClientID: "c", Subscribe: []string{"answers"}})
		dialError, ok := errors.AsType[*mqtt.DialError](err)
		if !ok || dialError.Stage != mqtt.StageConnect {
			t.Errorf("0x%02X: %v, want a DialError at %s", code, err, mqtt.StageConnect)
		}
		refusal, ok := errors.AsType[*mqtt.ReasonError](err)
		if want := (mqtt.ReasonError{Packet: "CONNACK", Code: code, Text: "why"}); !ok || *refusal != want {
			t.Errorf("0x%02X: %v", code, err)
		}
	}
}

// TestServerReference: a broker that refuses CONNECT, or ends a connection, names the broker to use instead.
func TestServerReference(t *testing.T) {
	const reference = "\x1C\x00\x06b:8883"
	for want, script := range map[string]func(*peer){
		`CONNACK 0x9D server moved ("why"): "b:8883"`: func(p *peer) {
			p.read(packets.CONNECT)
			p.read(packets.SUBSCRIBE)
			p.send(connack(0x9D, "\x1F\x00\x03why"+reference))
		},
		`DISCONNECT 0x9C use another server: "b:8883"`: func(p *peer) {
			p.read(packets.CONNECT)
			p.read(packets.SUBSCRIBE)
			p.send(connack(0) + "\xE0\x0B\x9C\x09" + reference)
		},
	} {
		_, err := mqtt.Dial(within(t), mqtt.Options{Address: hostile(t, script), ClientID: "c", Subscribe: []string{"answers"}})
		if refusal, ok := errors.AsType[*mqtt.ReasonError](err); !ok || refusal.Reference != "b:8883" || refusal.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestHostileBroker checks how connections end that a broker accepted at first.
func TestHostileBroker(t *testing.T) {
	for _, test := range []struct{ name, wire, want string }{
		{"closes", "", "the broker closed the connection"},
		{"second CONNACK", connack(0), "malformed packet from the broker: a second CONNACK"},
		{"QoS 2", "\x34\x06\x00\x01t\x00\x01\x00", "malformed packet from the broker: a PUBLISH with QoS 2, which nobody subscribed to"},
		{"packet identifier 0", "\x32\x06\x00\x01t\x00\x00\x00", "malformed packet from the broker: a PUBLISH with packet identifier 0"},
		{"topic alias", "\x30\x06\x00\x00\x03\x23\x00\x01", "malformed packet from the broker: a PUBLISH with a topic alias, which was not granted"},
		{"more than was allowed", "\x30\x81\x08", "malformed packet from the broker: it announces 1025 bytes, more than the 1024 that were allowed"},
		{"PUBREC", "\x50\x02\x00\x01", "malformed packet from the broker: PUBREC is not for a client that did not ask for it"},
		{"AUTH", "\xF0\x00", "malformed packet from the broker: AUTH is not for a client that did not ask for it"},
		{"PINGREQ", "\xC0\x00", "malformed packet from the broker: a broker does not send PINGREQ"},
		{"DISCONNECT without a reason", "\xE0\x00", "DISCONNECT 0x00 normal disconnection"},
		{"DISCONNECT", "\xE0\x07\x8E\x05\x1F\x00\x02by", `DISCONNECT 0x8E session taken over ("by")`},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := hostile(t, func(p *peer) {
				p.accept()
				p.read(packets.PUBLISH)
				p.send(test.wire)
				if test.wire != "" {
					p.silence()
				}
			})
			conn := dial(t, address, mqtt.Options{MaxPacketSize: 1024})
			acked := make(chan error, 1)
			if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t"}, func(err error) { acked <- err }); err != nil {
				t.Fatal(err)
			}
			err := wait(t, "the outcome of the publish", acked)
			if _, ok := errors.AsType[*mqtt.LostError](err); !ok || err.Error() != "connection lost: "+test.want {
				t.Errorf("the publish: %v, want %s", err, test.want)
			}
			if again := lost(t, conn); again != err {
				t.Errorf("the connection: %v, want %v", again, err)
			}
			if again := conn.Publish(t.Context(), mqtt.Message{Topic: "t"}, func(error) { t.Error("acked") }); again != err {
				t.Errorf("the next publish: %v, want %v", again, err)
			}
			if again := conn.Subscribe(t.Context(), "t"); again != err {
				t.Errorf("the next subscription: %v, want %v", again, err)
			}
			if again := conn.Close(); again != err {
				t.Errorf("Close: %v, want %v", again, err)
			}
		})
	}
}

// TestUnknownAcknowledgements: unknown acknowledgements are ignored, because brokers repeat themselves.
func TestUnknownAcknowledgements(t *testing.T) {
	address := hostile(t, func(p *peer) {
		p.accept()
		id := p.read(packets.PUBLISH).PacketID()
		p.send(puback(id+1, 0x87), puback(id, 0), puback(id, 0x87), "\x90\x04\x12\x34\x00\x87", "\xD0\x00")
		p.read(packets.PUBLISH)
		p.send(puback(id+1, 0x10))
		p.silence()
	})
	conn := dial(t, address, mqtt.Options{})
	for range 2 {
		acked := make(chan error, 2)
		if err := conn.Publish(t.Context(), mqtt.Message{Topic: "t"}, func(err error) { acked <- err }); err != nil {
			t.Fatal(err)
		}
		if err := granted(wait(t, "the acknowledgement", acked)); err != nil {
			t.Error(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestAnnouncedLength: a broker announces the largest packet and sends nothing of it, so Dial waits until its
// deadline.
func TestAnnouncedLength(t *testing.T) {
	address := hostile(t, func(p *peer) {
		p.read(packets.CONNECT)
		p.send("\x20\xFF\xFF\xFF\x7F")
		p.silence()
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := mqtt.Dial(ctx, mqtt.Options{Address: address, ClientID: "c"})
	runtime.ReadMemStats(&after)
	dialError, ok := errors.AsType[*mqtt.DialError](err)
	if !ok || dialError.Stage != mqtt.StageConnect || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a DialError at %s with context.DeadlineExceeded", err, mqtt.StageConnect)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

// TestSilence: at each stage, Dial waits for a broker that never answers.
func TestSilence(t *testing.T) {
	// A listener that accepts nothing: the kernel establishes connections nevertheless.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	for _, test := range []struct {
		stage mqtt.Stage
		o     mqtt.Options
	}{
		{mqtt.StageTLS, mqtt.Options{Address: ln.Addr().String(), TLS: trust(t, nil)}},
		{mqtt.StageConnect, mqtt.Options{Address: ln.Addr().String()}},
		{mqtt.StageSubscribe, mqtt.Options{Subscribe: []string{"t"}, Address: hostile(t, func(p *peer) {
			p.accept()
			p.silence()
		})}},
	} {
		for _, cause := range []error{context.DeadlineExceeded, context.Canceled} {
			if cause == context.Canceled && test.stage == mqtt.StageSubscribe {
				continue // its peer serves only one connection
			}
			t.Run(fmt.Sprint(test.stage, " ", cause), func(t *testing.T) {
				t.Parallel()
				// Long enough for a busy machine to reach the stage.
				const patience = 2 * time.Second
				ctx, cancel := context.WithCancel(t.Context())
				if cause == context.DeadlineExceeded {
					ctx, cancel = context.WithTimeout(t.Context(), patience)
				} else {
					time.AfterFunc(patience, cancel)
				}
				defer cancel()
				_, err := mqtt.Dial(ctx, test.o)
				dialError, ok := errors.AsType[*mqtt.DialError](err)
				if !ok || dialError.Stage != test.stage || !errors.Is(err, cause) {
					t.Errorf("%v, want a DialError at %s with %v", err, test.stage, cause)
				}
			})
		}
	}
}
