package mqtt_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/leaktest"
	"github.com/sscli/sscli/internal/testkit/testpeer"
)

// TestMain checks after all tests that no connection left a goroutine behind, whether it was closed, lost or
// never established.
func TestMain(m *testing.M) { leaktest.Main(m, "internal/mqtt.(*Conn)") }

// A peer is a hostile, or merely odd, broker: it sends the bytes that a test gives it. Tests of normal
// behavior use the emulator.
type peer struct {
	net.Conn
	t *testing.T
}

// hostile returns an address, runs script for the first connection to it, and closes the connection
// afterwards.
func hostile(t *testing.T, script func(*peer)) string {
	t.Helper()
	return testpeer.Serve(t, func(n int, nc net.Conn) {
		if n == 0 {
			script(&peer{nc, t})
			return
		}
		<-t.Context().Done()
	})
}

// piped is like hostile, but for a test in a bubble of synctest: the options that it returns connect in memory.
func piped(t *testing.T, script func(*peer)) mqtt.Options {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		script(&peer{theirs, t})
	}()
	return mqtt.Options{Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}
}

// read returns the next packet, which must have this type. Otherwise the script ends.
func (p *peer) read(packet byte) *packets.ControlPacket {
	cp, err := packets.ReadPacket(p)
	if err != nil {
		if p.t.Context().Err() == nil {
			p.t.Errorf("the peer waits for packet type %d: %v", packet, err)
		}
		runtime.Goexit()
	}
	if cp.Type != packet {
		p.t.Errorf("the peer got %s, want packet type %d", cp.PacketType(), packet)
		runtime.Goexit()
	}
	return cp
}

// send writes bytes in one write. It ignores errors, because the client may have closed the connection.
func (p *peer) send(wire ...string) {
	io.WriteString(p, strings.Join(wire, ""))
}

// silence reads until the client closes the connection.
func (p *peer) silence() {
	io.Copy(io.Discard, p)
}

// accept grants the login. properties are those of CONNACK.
func (p *peer) accept(properties ...string) {
	p.read(packets.CONNECT)
	p.send(connack(0, properties...))
}

func connack(code byte, properties ...string) string {
	all := strings.Join(properties, "")
	return string([]byte{0x20, byte(3 + len(all)), 0, code, byte(len(all))}) + all
}

func puback(id uint16, code byte) string {
	return string([]byte{0x40, 3, byte(id >> 8), byte(id), code})
}

func publish(topic, payload string, id uint16) string {
	var b bytes.Buffer
	cp := (&packets.Publish{Topic: topic, Payload: []byte(payload), QoS: 1, PacketID: id, Properties: &packets.Properties{}}).ToControlPacket()
	if id == 0 {
		cp.Content.(*packets.Publish).QoS = 0
	}
	cp.WriteTo(&b)
	// paho also writes the packet type into the flags.
	wire := b.Bytes()
	wire[0] = 0x30 | wire[0]&0x0F
	return string(wire)
}

// within returns a context for something that must happen soon.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, address string, o mqtt.Options) *mqtt.Conn {
	t.Helper()
	o.Address = address
	if o.ClientID == "" {
		o.ClientID = t.Name()
	}
	conn, err := mqtt.Dial(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wait returns the next value of a channel, or fails.
func wait[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-within(t).Done():
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// lost returns how the connection ended.
func lost(t *testing.T, conn *mqtt.Conn) error {
	t.Helper()
	wait(t, "the end of the connection", conn.Done())
	return conn.Err()
}
