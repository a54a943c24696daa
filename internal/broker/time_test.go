package broker_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/pipenet"
	"github.com/sscli/sscli/internal/testkit/mqtttest"
)

// pipes is a listener without a network, for virtual time.
type pipes struct{ *pipenet.Listener }

func (p pipes) dial(t *testing.T, id string) *client {
	t.Helper()
	conn, err := p.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return &client{mqtttest.New(t, conn, id)}
}

// inVirtualTime runs a test with a broker in virtual time.
func inVirtualTime(t *testing.T, o broker.Options, test func(*testing.T, *server, pipes)) {
	synctest.Test(t, func(t *testing.T) {
		p := pipes{pipenet.Listen()}
		s := newServer(o, p.Addr())
		s.Serve(p)
		test(t, s, p)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestKeepAlive: the connection ends one and a half times Keep Alive after the last packet [MQTT-3.1.2-22],
// of any kind.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, broker.Options{Limits: broker.Limits{KeepAlive: 100 * time.Second}}, func(t *testing.T, s *server, p pipes) {
		start := time.Now()
		c := p.dial(t, "c")
		c.Hello(func(p *packets.Connect) { p.KeepAlive = 10 })
		time.Sleep(14 * time.Second)
		c.Send(&packets.Pingreq{})
		c.Expect("PINGRESP")
		time.Sleep(14 * time.Second)
		c.Publish("t", 1, "", 0x10)
		c.Conn.SetReadDeadline(time.Time{})
		packet, err := packets.ReadPacket(c.Conn)
		if err != nil || c.Describe(packet) != "DISCONNECT 0x8d" || time.Since(start) != 43*time.Second {
			t.Errorf("after %v: %v, %v", time.Since(start), packet, err)
		}
		c.Conn.Close()
		// Without a Keep Alive of the client, the broker's limit applies; a client of MQTT 3.1.1 cannot be
		// told.
		d, e := p.dial(t, "d"), p.dial(t, "e")
		d.Hello(func(p *packets.Connect) { p.KeepAlive = 0 })
		e.Raw("\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01e")
		e.bytes("\x20\x02\x00\x00")
		time.Sleep(149 * time.Second)
		d.Nothing()
		start = time.Now()
		d.Conn.SetReadDeadline(time.Time{})
		if packet, err := packets.ReadPacket(d.Conn); err != nil || d.Describe(packet) != "DISCONNECT 0x8d" || time.Since(start) != 150*time.Second {
			t.Errorf("after %v: %v, %v", time.Since(start), packet, err)
		}
		time.Sleep(24 * time.Hour)
		e.Raw("\xc0\x00")
		e.bytes("\xd0\x00")
		d.Conn.Close()
		e.Conn.Close()
	})
}

// TestKeepAliveOfPackets: bytes of an incomplete packet don't count as a packet [MQTT-3.1.2-22].
func TestKeepAliveOfPackets(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, broker.Options{}, func(t *testing.T, _ *server, p pipes) {
		start := time.Now()
		c := p.dial(t, "c")
		c.Hello(func(p *packets.Connect) { p.KeepAlive = 10 })
		c.Raw("\x30\x7f")
		for range 14 {
			time.Sleep(time.Second)
			c.Raw("x")
		}
		c.Conn.SetReadDeadline(time.Time{})
		packet, err := packets.ReadPacket(c.Conn)
		if err != nil || c.Describe(packet) != "DISCONNECT 0x8d" || time.Since(start) != 15*time.Second {
			t.Errorf("after %v: %v, %v", time.Since(start), packet, err)
		}
		c.Conn.Close()
	})
}

// halves is a connection whose two directions are closed separately, as in TCP.
type halves struct {
	net.Conn // for reading
	out      net.Conn
	closed   *atomic.Value // time.Time of Close
}

func (h halves) Write(p []byte) (int, error)        { return h.out.Write(p) }
func (h halves) SetWriteDeadline(t time.Time) error { return h.out.SetWriteDeadline(t) }
func (h halves) CloseWrite() error                  { return h.out.Close() }

func (h halves) Close() error {
	h.closed.CompareAndSwap(nil, time.Now())
	return errors.Join(h.out.Close(), h.Conn.Close())
}

// TestLinger: a client that is still sending when it is disconnected has time to read the reason (MQTT 5,
// 4.13), but not forever.
func TestLinger(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bytes int // number of bytes that the client sends, one each 150 ms
		want  time.Duration
	}{
		"silent":       {0, 200 * time.Millisecond},
		"sends more":   {10, 1700 * time.Millisecond},
		"sends always": {100, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, broker.Options{}, func(t *testing.T, _ *server, p pipes) {
				ourIn, theirOut := net.Pipe()
				theirIn, ourOut := net.Pipe()
				var closed atomic.Value
				if err := p.Connect(t.Context(), halves{theirIn, theirOut, &closed}); err != nil {
					t.Fatal(err)
				}
				ours := halves{ourIn, ourOut, new(atomic.Value)}
				defer ours.Close()
				c := &client{mqtttest.New(t, ours, "c")}
				c.Hello()
				start := time.Now()
				c.Raw("\x00\x00")
				c.Ended("DISCONNECT 0x82")
				for range tt.bytes {
					time.Sleep(150 * time.Millisecond)
					if _, err := ours.Write([]byte("x")); err != nil {
						break
					}
				}
				time.Sleep(time.Second)
				if took := closed.Load().(time.Time).Sub(start); took != tt.want {
					t.Errorf("closed after %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// TestConnectTimeout: a connection without CONNECT is closed (MQTT 5, 3.1.4).
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, broker.Options{}, func(t *testing.T, _ *server, p pipes) {
		start := time.Now()
		c := p.dial(t, "c")
		c.Raw("\x10")
		if _, err := c.Conn.Read(make([]byte, 1)); err == nil || time.Since(start) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// TestTimers: timed events happen without a packet from any client.
func TestTimers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, broker.Options{}, func(t *testing.T, s *server, p pipes) {
		watch := p.dial(t, "watch")
		watch.Hello(func(p *packets.Connect) { p.KeepAlive = 0 })
		watch.Subscribe("w", 0)
		c := p.dial(t, "c")
		c.Hello(func(p *packets.Connect) {
			p.WillFlag, p.WillTopic, p.WillProperties = true, "w", &packets.Properties{WillDelayInterval: pointer(uint32(20))}
			p.Properties.SessionExpiryInterval = pointer(uint32(60))
		})
		c.Conn.Close()
		synctest.Wait()
		start := time.Now()
		watch.Conn.SetReadDeadline(time.Time{})
		if packet, err := packets.ReadPacket(watch.Conn); err != nil || watch.Describe(packet) != "w q0: " || time.Since(start) != 20*time.Second {
			t.Errorf("after %v: %v, %v", time.Since(start), packet, err)
		}
		sessions := func() int {
			s.Lock()
			defer s.Unlock()
			return s.Stats().Sessions
		}
		time.Sleep(39 * time.Second)
		synctest.Wait()
		before := sessions()
		time.Sleep(time.Second)
		synctest.Wait()
		if after := sessions(); before != 2 || after != 1 {
			t.Errorf("%d sessions, then %d", before, after)
		}
		watch.Conn.Close()
	})
}

// TestLateDisconnect: the time to send DISCONNECT begins when the broker gets to write it.
func TestLateDisconnect(t *testing.T) {
	t.Parallel()
	handle := func(c *broker.Client, _ *broker.Publish) byte {
		c.Disconnect(0x98)
		time.Sleep(time.Minute) // a machine that is busy, with the broker locked
		return broker.Success
	}
	inVirtualTime(t, broker.Options{Topic: "t", Handle: handle}, func(t *testing.T, _ *server, p pipes) {
		c := p.dial(t, "c")
		c.Hello()
		synctest.Wait() // nobody may wait for the lock in virtual time
		c.Conn.SetReadDeadline(time.Time{})
		c.Send(c.Message("t", 0, "m"))
		if packet, err := packets.ReadPacket(c.Conn); err != nil || c.Describe(packet) != "DISCONNECT 0x98" {
			t.Errorf("%v, %v", packet, err)
		}
		c.Conn.Close()
	})
}
