package broker_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/broker"
)

// bytes expects exactly these bytes.
func (c *client) bytes(want string) {
	c.T.Helper()
	got := make([]byte, len(want))
	c.Conn.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.ReadFull(c.Conn, got); err != nil || string(got) != want {
		c.T.Fatalf("%s: got %q, want %q (%v)", c.ID, got[:n], want, err)
	}
}

// over expects the connection to be closed without another byte.
func (c *client) over() {
	c.T.Helper()
	c.Conn.SetReadDeadline(time.Now().Add(patience))
	if n, err := c.Conn.Read(make([]byte, 1)); n > 0 || err != io.EOF && !strings.Contains(err.Error(), "reset") {
		c.T.Fatalf("%s: got %d bytes, %v at the end", c.ID, n, err)
	}
}

const (
	hello4   = "\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01c" // clean session
	lasting4 = "\x10\x0d\x00\x04MQTT\x04\x00\x00\x3c\x00\x01c"
)

// TestVersion4Connect: the return codes of MQTT 3.1.1, 3.2.2.3.
func TestVersion4Connect(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Login: func(l *broker.Login) broker.Verdict {
		switch l.ClientID {
		case "x":
			return broker.Verdict{Code: broker.NotAuthorized, Text: "text"}
		case "y":
			return broker.Verdict{Code: broker.BadLogin}
		case "z":
			return broker.Verdict{Code: broker.ServerBusy}
		}
		return broker.Verdict{}
	}})
	for bytes, want := range map[string]string{
		hello4: "\x20\x02\x00\x00",
		"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00":           "\x20\x02\x00\x00", // no client id
		"\x10\x0c\x00\x04MQTT\x04\x00\x00\x3c\x00\x00":           "\x20\x02\x00\x02", // [MQTT-3.1.3-8]
		"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01x":          "\x20\x02\x00\x05",
		"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01y":          "\x20\x02\x00\x04",
		"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01z":          "\x20\x02\x00\x03",
		"\x10\x0f\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x01c":        "\x20\x02\x00\x01", // MQTT 3.1
		"\x10\x0f\x00\x06MQIsdp\x83\x02\x00\x3c\x00\x01c":        "\x20\x02\x00\x01", // MQTT 3.1 of a bridge
		"\x10\x10\x00\x04MQTT\x04\x42\x00\x3c\x00\x01c\x00\x01p": "",                 // a password without a user name [MQTT-3.1.2-22]
		"\x10\x0d\x00\x04MQTT\x04\x03\x00\x3c\x00\x01c":          "",                 // the reserved flag [MQTT-3.1.2-3]
	} {
		c := dial(t, s, "c")
		c.Raw(bytes)
		c.bytes(want)
		if want != "\x20\x02\x00\x00" {
			c.over()
		}
	}
}

// TestVersion4: the differences from MQTT 5.
func TestVersion4(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Authorize: func(_ *broker.Identity, topic string, _ bool) bool { return topic != "no" }})
	c := dial(t, s, "c")
	c.Raw(lasting4)
	c.bytes("\x20\x02\x00\x00")
	c.Raw("\x82\x0f\x00\x09\x00\x01t\x02\x00\x02no\x00\x00\x01#\x00")
	c.bytes("\x90\x05\x00\x09\x02\x80\x00")
	c.Raw("\xa2\x08\x00\x0a\x00\x01#\x00\x01x")
	c.bytes("\xb0\x02\x00\x0a")
	c.Raw("\x32\x07\x00\x02no\x00\x05x") // not allowed, but acknowledged
	c.bytes("\x40\x02\x00\x05")
	// Messages from MQTT 5 clients arrive without their properties, and MQTT 5 clients receive messages of
	// MQTT 3.1.1.
	v5 := connect(t, s, "v5")
	v5.Subscribe("t", 2)
	v5.Send(v5.Message("t", 1, "x", expiry(100)))
	c.bytes("\x32\x06\x00\x01t\x00\x01x")
	v5.ExpectAll("PUBACK 2 0x00", "t q1: x")
	c.Raw("\x34\x06\x00\x01t\x00\x07y")
	c.bytes("\x34\x06\x00\x01t\x00\x02y" + "\x50\x02\x00\x07")
	v5.Expect("t q2: y")
	c.Raw("\x62\x02\x00\x07\xc0\x00")
	c.bytes("\x70\x02\x00\x07\xd0\x00")
	// The session outlives the connection for a limited time, and the unacknowledged message comes again with
	// DUP.
	c.Raw("\x40\x02\x00\x01\xe0\x00")
	c.over()
	v5.Publish("t", 0, "not kept", 0)
	v5.Expect("t q0: not kept")
	v5.Send(v5.Message("t", 1, "z"))
	v5.ExpectAll("PUBACK 3 0x00", "t q1: z")
	s.advance(1000 * time.Hour)
	c = dial(t, s, "c")
	c.Raw(lasting4)
	c.bytes("\x20\x02\x01\x00" + "\x3c\x06\x00\x01t\x00\x02y" + "\x32\x06\x00\x01t\x00\x03z")
	// MQTT 3.1.1 servers send no DISCONNECT, not even when a connection is taken over.
	d := dial(t, s, "d")
	d.Raw(hello4)
	d.bytes("\x20\x02\x00\x00")
	c.over()
	d.Raw("\xf0\x00") // AUTH
	d.over()
}
