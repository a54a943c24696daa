package broker_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/broker"
)

// TestFirstPacket: [MQTT-3.1.0-1], [MQTT-3.1.0-2], [MQTT-3.1.2-1], [MQTT-3.1.2-2],
// [MQTT-3.1.2-3], [MQTT-3.14.0-1].
func TestFirstPacket(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	const hello = "\x10\x0e\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x01c"
	tests := map[string]struct {
		bytes string
		want  []string
	}{
		"PINGREQ":             {"\xc0\x00", nil},
		"PUBLISH":             {"\x30\x04\x00\x01tx", nil},
		"AUTH":                {"\xf0\x00", nil},
		"packet type 0":       {"\x00\x00", nil},
		"HTTP":                {"GET / HTTP/1.1\r\n\r\n", nil},
		"another protocol":    {"\x10\x0e\x00\x04MQTS\x05\x02\x00\x3c\x00\x00\x01c", nil},
		"MQTT 6":              {"\x10\x0e\x00\x04MQTT\x06\x02\x00\x3c\x00\x00\x01c", []string{"CONNACK 0x84"}},
		"the reserved flag":   {"\x10\x0e\x00\x04MQTT\x05\x03\x00\x3c\x00\x00\x01c", []string{"CONNACK 0x81"}},
		"a will with QoS 3":   {"\x10\x14\x00\x04MQTT\x05\x1e\x00\x3c\x00\x00\x01c\x00\x00\x01w\x00\x00", []string{"CONNACK 0x81"}},
		"a will for no topic": {"\x10\x13\x00\x04MQTT\x05\x06\x00\x3c\x00\x00\x01c\x00\x00\x00\x00\x00", []string{"CONNACK 0x82"}},
		"a will for topics":   {"\x10\x14\x00\x04MQTT\x05\x06\x00\x3c\x00\x00\x01c\x00\x00\x01#\x00\x00", []string{"CONNACK 0x90"}},
		"no will with QoS 1":  {"\x10\x0e\x00\x04MQTT\x05\x0a\x00\x3c\x00\x00\x01c", []string{"CONNACK 0x81"}},
		"no will, retained":   {"\x10\x0e\x00\x04MQTT\x05\x22\x00\x3c\x00\x00\x01c", []string{"CONNACK 0x81"}},
		"bytes at the end":    {"\x10\x0f\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x01cx", []string{"CONNACK 0x81"}},
		"flags of CONNECT":    {"\x11\x0e\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x01c", nil},
		"no UTF-8":            {"\x10\x0e\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x01\xff", []string{"CONNACK 0x81"}},
		"receive maximum 0":   {"\x10\x11\x00\x04MQTT\x05\x02\x00\x3c\x03\x21\x00\x00\x00\x01c", []string{"CONNACK 0x82"}},
		"packet size 0":       {"\x10\x13\x00\x04MQTT\x05\x02\x00\x3c\x05\x27\x00\x00\x00\x00\x00\x01c", []string{"CONNACK 0x82"}},
		"twice":               {"\x10\x14\x00\x04MQTT\x05\x02\x00\x3c\x06\x21\x00\x01\x21\x00\x01\x00\x01c", []string{"CONNACK 0x82"}},
		"a foreign property":  {"\x10\x11\x00\x04MQTT\x05\x02\x00\x3c\x03\x23\x00\x01\x00\x01c", []string{"CONNACK 0x81"}},
		"data without method": {"\x10\x12\x00\x04MQTT\x05\x02\x00\x3c\x04\x16\x00\x01x\x00\x01c", []string{"CONNACK 0x82"}},
		"a method":            {"\x10\x12\x00\x04MQTT\x05\x02\x00\x3c\x04\x15\x00\x01x\x00\x01c", []string{"CONNACK 0x8c"}},
		"2 MiB":               {"\x10\x80\x80\x80\x01", nil},
		"a second CONNECT":    {hello + hello, []string{"CONNACK 0x00", "DISCONNECT 0x82"}},
		"a length without end": {
			hello + "\x30\xff\xff\xff\xff", []string{"CONNACK 0x00", "DISCONNECT 0x81"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s, "c")
			c.Raw(tt.bytes)
			c.Ended(tt.want...)
		})
	}
}

// TestProtocolErrors: packets that end a connection, with the reason codes (MQTT 5, 4.13).
func TestProtocolErrors(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{MaxPacketSize: 1000, ReceiveMaximum: 2, TopicAliasMaximum: 5}})
	for name, tt := range map[string]struct {
		bytes string
		code  string
	}{
		"QoS 3 [MQTT-3.3.1-4]":                            {"\x36\x07\x00\x01t\x00\x01\x00x", "0x81"},
		"DUP with QoS 0 [MQTT-3.3.1-2]":                   {"\x38\x05\x00\x01t\x00x", "0x81"},
		"packet id 0 [MQTT-2.2.1-3]":                      {"\x32\x07\x00\x01t\x00\x00\x00x", "0x82"},
		"topic with wildcard [MQTT-3.3.2-2]":              {"\x30\x05\x00\x01+\x00x", "0x90"},
		"no topic (3.3.2.1)":                              {"\x30\x04\x00\x00\x00x", "0x82"},
		"topic with NUL [MQTT-1.5.4-2]":                   {"\x30\x05\x00\x01\x00\x00x", "0x81"},
		"topic of a surrogate [MQTT-1.5.4-1]":             {"\x30\x07\x00\x03\xed\xa0\x80\x00x", "0x81"},
		"topic alias 0 [MQTT-3.3.2-8]":                    {"\x30\x08\x00\x01t\x03\x23\x00\x00x", "0x94"},
		"topic alias 6 [MQTT-3.3.2-9]":                    {"\x30\x08\x00\x01t\x03\x23\x00\x06x", "0x94"},
		"topic alias that is not known (3.3.4)":           {"\x30\x07\x00\x00\x03\x23\x00\x05x", "0x82"},
		"response topic with wildcard [MQTT-3.3.2-14]":    {"\x30\x09\x00\x01t\x04\x08\x00\x01#x", "0x82"},
		"subscription identifier [MQTT-3.3.4-6]":          {"\x30\x07\x00\x01t\x02\x0b\x01x", "0x81"},
		"payload format 2 (3.3.2.3.2)":                    {"\x30\x07\x00\x01t\x02\x01\x02x", "0x82"},
		"length in a byte too many [MQTT-1.5.5-1]":        {"\xc0\x80\x00", "0x81"},
		"properties' length in two [MQTT-1.5.5-1]":        {"\x30\x06\x00\x01t\x80\x00x", "0x81"},
		"identifier in a byte too many [MQTT-1.5.5-1]":    {"\x82\x0a\x00\x01\x03\x0b\x81\x00\x00\x01t\x00", "0x81"},
		"flags of SUBSCRIBE [MQTT-3.8.1-1]":               {"\x80\x07\x00\x01\x00\x00\x01t\x00", "0x81"},
		"SUBSCRIBE without filter [MQTT-3.8.3-2]":         {"\x82\x03\x00\x01\x00", "0x82"},
		"reserved options [MQTT-3.8.3-5]":                 {"\x82\x07\x00\x01\x00\x00\x01t\x40", "0x81"},
		"retain handling 3 (3.8.3.1)":                     {"\x82\x07\x00\x01\x00\x00\x01t\x30", "0x82"},
		"no local on a shared subscription [3.8.3-4]":     {"\x82\x10\x00\x01\x00\x00\x0a$share/g/t\x04", "0x82"},
		"subscription identifier 0 (3.8.2.1.2)":           {"\x82\x09\x00\x01\x02\x0b\x00\x00\x01t\x00", "0x82"},
		"an empty filter [MQTT-4.7.3-1]":                  {"\x82\x06\x00\x01\x00\x00\x00\x00", "0x81"},
		"UNSUBSCRIBE without filter [MQTT-3.10.3-2]":      {"\xa2\x03\x00\x01\x00", "0x82"},
		"flags of PUBREL [MQTT-3.6.1-1]":                  {"\x60\x02\x00\x01", "0x81"},
		"flags of DISCONNECT [MQTT-3.14.1-1]":             {"\xe1\x00", "0x81"},
		"AUTH without method [MQTT-4.12.1-1]":             {"\xf0\x02\x19\x00", "0x82"},
		"reason code of PUBACK (3.4.2.1)":                 {"\x40\x03\x00\x01\x92", "0x82"},
		"DISCONNECT that keeps the session [3.14.2-2]":    {"\xe0\x07\x00\x05\x11\x00\x00\x00\x01", "0x82"},
		"a CONNACK from a client":                         {"\x20\x03\x00\x00\x00", "0x82"},
		"larger than the maximum packet size (3.2.2.3.6)": {"\x30\xf0\x07", "0x95"},
		"more than the receive maximum (3.3.4)":           {"\x34\x06\x00\x01t\x00\x01\x00\x34\x06\x00\x01t\x00\x02\x00\x34\x06\x00\x01t\x00\x03\x00", "0x93"},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, s, "c")
			c.Raw(tt.bytes)
			if tt.code == "0x93" {
				c.Expect("PUBREC 1 0x10", "PUBREC 2 0x10")
			}
			c.Ended("DISCONNECT " + tt.code)
		})
	}
}

// TestConnack: the properties of CONNACK with the broker's capabilities (MQTT 5, 3.2.2.3) and with the values
// that it replaced.
func TestConnack(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{ReceiveMaximum: 7, MaxPacketSize: 5000, TopicAliasMaximum: 3, KeepAlive: 100 * time.Second}})
	c := dial(t, s, "")
	p := c.Hello(func(p *packets.Connect) { p.KeepAlive = 200 }).Properties
	switch {
	case *p.ReceiveMaximum != 7, *p.MaximumPacketSize != 5000, *p.TopicAliasMaximum != 3:
		t.Errorf("limits %d %d %d", *p.ReceiveMaximum, *p.MaximumPacketSize, *p.TopicAliasMaximum)
	case p.ServerKeepAlive == nil || *p.ServerKeepAlive != 100: // [MQTT-3.2.2-21]
		t.Errorf("server keep-alive %v", p.ServerKeepAlive)
	case p.AssignedClientID == "": // [MQTT-3.2.2-16]
		t.Error("no client id was assigned")
	}
	other := dial(t, s, "")
	if q := other.Hello().Properties; q.AssignedClientID == p.AssignedClientID || q.ServerKeepAlive != nil {
		t.Errorf("id %q, server keep-alive %v", q.AssignedClientID, q.ServerKeepAlive)
	}
	other.Nothing()
	c.Nothing()
}

// TestConnackSize: a client whose maximum packet size does not allow the CONNACK is refused with a smaller
// one if that fits, and gets no larger packet [MQTT-3.1.2-24], [MQTT-3.2.0-1].
func TestConnackSize(t *testing.T) {
	t.Parallel()
	var connected []string
	s := start(t, broker.Options{
		Connected:    func(c *broker.Client) { connected = append(connected, c.ID) },
		Disconnected: func(c *broker.Client) { connected = append(connected, "gone "+c.ID) },
	})
	for size := range uint32(30) {
		c := dial(t, s, "c")
		c.Send(c.Connection(func(p *packets.Connect) { p.Properties.MaximumPacketSize = pointer(size + 1) }))
		switch size++; {
		case size < 5:
			c.Ended()
		case size < 11: // fixed header, two bytes of flags and code, and two properties of three bytes
			c.Ended("CONNACK 0x95")
		default:
			c.Expect("CONNACK 0x00")
			c.Send(&packets.Disconnect{Properties: &packets.Properties{}})
			c.Ended()
		}
	}
	s.Lock()
	defer s.Unlock()
	if want := 2 * (30 - 10); len(connected) != want || s.Stats().Clients != 0 {
		t.Errorf("connected and disconnected: %q, want %d; %d clients", connected, want, s.Stats().Clients)
	}
}

// TestTakeOver: [MQTT-3.1.4-3].
func TestTakeOver(t *testing.T) {
	t.Parallel()
	var events []string
	s := start(t, broker.Options{
		Connected:    func(c *broker.Client) { events = append(events, "+"+c.ID) },
		Disconnected: func(c *broker.Client) { events = append(events, "-"+c.ID) },
	})
	old := connect(t, s, "c", lasting)
	old.Subscribe("t", 1)
	c := resume(t, s, "c")
	old.Ended("DISCONNECT 0x8e")
	c.Publish("t", 0, "x", 0)
	c.Expect("t q0: x")
	// A clean start discards the session [MQTT-3.1.2-4].
	d := connect(t, s, "c")
	c.Ended("DISCONNECT 0x8e")
	d.Publish("t", 1, "x", 0x10)
	d.Nothing()
	s.Lock()
	defer s.Unlock()
	if got := strings.Join(events, " "); got != "+c -c +c -c +c" {
		t.Errorf("events %s", got)
	}
	if st := s.Stats(); st.Clients != 1 || st.Sessions != 1 || st.Subscriptions != 0 {
		t.Errorf("%+v", st)
	}
}

// TestSessionExpiry: MQTT 5, 3.1.2.11.2 and 3.14.2.2.2.
func TestSessionExpiry(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	seconds := func(n uint32) func(*packets.Connect) {
		return func(p *packets.Connect) { p.CleanStart, p.Properties.SessionExpiryInterval = false, &n }
	}
	present := func(id string, want bool) *client {
		t.Helper()
		c := dial(t, s, id)
		if ack := c.Hello(seconds(100_000)); ack.SessionPresent != want {
			t.Errorf("%s: session present %t", id, ack.SessionPresent)
		}
		return c
	}
	leave := func(c *client) {
		c.Conn.Close()
		s.await(t, func(st broker.Stats) bool { return st.Connections == 0 })
	}
	leave(present("c", false))
	s.advance(99_000 * time.Second)
	leave(present("c", true))
	s.advance(99_000 * time.Second)
	c := present("c", true) // starts a new interval
	s.advance(200_000 * time.Second)
	leave(c) // no time of the interval passes while the client is connected
	leave(present("c", true))
	s.advance(100_000 * time.Second)
	c = present("c", false)

	c.Send(&packets.Disconnect{Properties: &packets.Properties{SessionExpiryInterval: pointer(uint32(0))}})
	c.Ended()
	c = present("c", false)
	c.Send(&packets.Disconnect{Properties: &packets.Properties{SessionExpiryInterval: pointer(uint32(200_000))}})
	c.Ended()
	s.advance(199_000 * time.Second)
	leave(present("c", true))

	leave(connect(t, s, "ever", seconds(0xFFFFFFFF)))
	s.advance(1000 * 24 * time.Hour)
	leave(present("ever", true))
	leave(connect(t, s, "never", func(p *packets.Connect) { p.CleanStart = false }))
	present("never", false)
}

// TestReconnectAtOnce: what a client sent before it reconnected is handled first: no message is lost, its
// DISCONNECT cancels the will, and the Session Expiry Interval in the DISCONNECT applies.
func TestReconnectAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	sub := connect(t, s, "sub")
	sub.Subscribe("t", 0)
	sub.Subscribe("will", 0)
	const times = 2000
	for i := range times {
		c := dial(t, s, "c")
		ack := c.Hello(lasting, func(p *packets.Connect) { p.WillFlag, p.WillTopic = true, "will" })
		if kept := i%2 == 1; ack.SessionPresent != kept {
			t.Fatalf("connection %d: session present %t", i, ack.SessionPresent)
		}
		var last bytes.Buffer
		c.Message("t", 0, fmt.Sprint(i)).WriteTo(&last)
		expiry := uint32(3600 * (1 - i%2))
		(&packets.Disconnect{Properties: &packets.Properties{SessionExpiryInterval: &expiry}}).WriteTo(&last)
		c.Raw(last.String())
		c.Conn.Close()
	}
	for i := range times {
		sub.Expect(fmt.Sprintf("t q0: %d", i))
	}
	sub.Nothing()
}

// TestLogin: user names, and reason strings.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{
		Login: func(l *broker.Login) broker.Verdict {
			if l.Username != "ann" || string(l.Password) != "secret" {
				return broker.Verdict{Code: broker.BadLogin, Text: "no, " + l.Username}
			}
			return broker.Verdict{Username: "Ann"}
		},
		Authorize: func(c *broker.Identity, topic string, write bool) bool {
			return c.Username == "Ann" && (topic == "both" || topic == "read" && !write || topic == "$share/g/read" || topic == "write" && write)
		},
	})
	user := func(name, password string) func(*packets.Connect) {
		return func(p *packets.Connect) {
			p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = true, name, true, []byte(password)
		}
	}
	c := dial(t, s, "c")
	if ack := c.Hello(user("eve", "secret")); ack.ReasonCode != 0x86 || ack.Properties.ReasonString != "no, eve" {
		t.Errorf("CONNACK %#x %q", ack.ReasonCode, ack.Properties.ReasonString)
	}
	c.Ended()
	c = connect(t, s, "c", user("ann", "secret"))
	c.Subscription("read", 1, func(p *packets.Subscribe) {
		p.Subscriptions = append(p.Subscriptions, packets.SubOptions{Topic: "write"}, packets.SubOptions{Topic: "$share/g/read"},
			packets.SubOptions{Topic: "both", QoS: 2}, packets.SubOptions{Topic: "a+"})
	})
	c.Expect("SUBACK 1 135 0 2 143")
	c.Publish("read", 1, "", 0x87)
	c.Publish("read", 2, "", 0x87)
	c.Publish("read", 0, "", 0) // ignored silently
	c.Publish("write", 1, "", 0x10)
	c.Publish("$SYS/broker/version", 1, "", 0x87) // 4.7.2
	c.Nothing()
	d := dial(t, s, "d")
	ack := d.Hello(user("ann", "secret"), func(p *packets.Connect) {
		p.WillFlag, p.WillTopic, p.WillProperties = true, "read", &packets.Properties{}
	})
	if ack.ReasonCode != 0x87 {
		t.Errorf("a will for another's topic: CONNACK %#x", ack.ReasonCode)
	}
	d.Ended()
}

// TestEnhancedAuthentication: MQTT 5, 4.12.
func TestEnhancedAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Login: func(l *broker.Login) broker.Verdict {
		switch {
		case l.Method != "SUM":
			return broker.Verdict{Code: broker.BadAuthMethod}
		case l.Client.Value == nil:
			l.Client.Value = string(l.Data)
			return broker.Verdict{Code: broker.ContinueAuth, Data: []byte("challenge")}
		case string(l.Data) != l.Client.Value.(string)+"challenge":
			return broker.Verdict{Code: broker.NotAuthorized, Text: "the sum is wrong"}
		}
		l.Client.Value = nil
		return broker.Verdict{Data: []byte("welcome")}
	}})
	with := func(method, data string) func(*packets.Connect) {
		return func(p *packets.Connect) { p.Properties.AuthMethod, p.Properties.AuthData = method, []byte(data) }
	}
	auth := func(c *client, code byte, method, data string) {
		c.Send(&packets.Auth{ReasonCode: code, Properties: &packets.Properties{AuthMethod: method, AuthData: []byte(data)}})
	}
	c := dial(t, s, "c")
	c.Send(c.Connection(with("SUM", "me")))
	c.Expect("AUTH 0x18 SUM challenge")
	auth(c, 0x18, "SUM", "mechallenge")
	ack := c.Receive().Content.(*packets.Connack)
	if ack.ReasonCode != 0 || ack.Properties.AuthMethod != "SUM" || string(ack.Properties.AuthData) != "welcome" { // [MQTT-4.12.0-5]
		t.Errorf("CONNACK %v", ack)
	}
	auth(c, 0x19, "SUM", "again")
	c.Expect("AUTH 0x18 SUM challenge")
	c.Publish("t", 1, "x", 0x10) // 4.12.1: the connection continues meanwhile
	auth(c, 0x18, "SUM", "againchallenge")
	c.Expect("AUTH 0x00 SUM welcome")
	auth(c, 0x19, "SUM", "again")
	c.Expect("AUTH 0x18 SUM challenge")
	auth(c, 0x18, "SUM", "wrong")
	c.Ended("DISCONNECT 0x87") // [MQTT-4.12.1-2]

	for name, do := range map[string]func(*client){
		"another method [MQTT-4.12.0-1]": func(c *client) {
			c.Send(c.Connection(with("OTHER", "")))
			c.Ended("CONNACK 0x8c")
		},
		"refused (4.12.0-4)": func(c *client) {
			c.Send(c.Connection(with("SUM", "me")))
			c.Expect("AUTH 0x18 SUM challenge")
			auth(c, 0x18, "SUM", "you")
			c.Ended("CONNACK 0x87")
		},
		"another packet meanwhile [MQTT-3.1.2-30]": func(c *client) {
			c.Send(c.Connection(with("SUM", "me")))
			c.Expect("AUTH 0x18 SUM challenge")
			c.Send(&packets.Pingreq{})
			c.Ended("CONNACK 0x82")
		},
		"another method in AUTH [MQTT-4.12.0-5]": func(c *client) {
			c.Send(c.Connection(with("SUM", "me")))
			c.Expect("AUTH 0x18 SUM challenge")
			auth(c, 0x18, "DIFFERENCE", "mechallenge")
			c.Ended("CONNACK 0x82")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s, "d")
			do(c)
		})
	}
}

// TestShutdown: MQTT 5, 3.14.2.1.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{})
	c, silent := connect(t, s, "c"), dial(t, s, "")
	c.Publish("t", 1, "", 0x10)
	s.await(t, func(st broker.Stats) bool { return st.Connections == 2 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	c.Ended("DISCONNECT 0x8b")
	silent.Ended()
}

// TestResumeFullOutbox: a client whose session holds more than the outbox limit learns so after CONNACK
// [MQTT-3.2.0-1].
func TestResumeFullOutbox(t *testing.T) {
	t.Parallel()
	s := start(t, broker.Options{Limits: broker.Limits{Outbox: 4, Queue: 8}})
	c := connect(t, s, "c", lasting)
	c.Subscribe("t", 1)
	c.Conn.Close()
	s.await(t, func(st broker.Stats) bool { return st.Clients == 0 })
	p := connect(t, s, "p")
	for range 8 {
		p.Publish("t", 1, "m", 0)
	}
	d := dial(t, s, "c")
	if ack := d.Hello(lasting, receiveMaximum(1)); ack.ReasonCode != 0 || !ack.SessionPresent {
		t.Fatalf("CONNACK %#x, session present %t", ack.ReasonCode, ack.SessionPresent)
	}
}

// TestServerKeepAlive: the broker sends its limit in whole seconds, from 1 to 65535 (MQTT 5, 3.2.2.3.14).
func TestServerKeepAlive(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration]uint16{24 * time.Hour: math.MaxUint16, 1500 * time.Millisecond: 1, time.Millisecond: 1} {
		s := start(t, broker.Options{Limits: broker.Limits{KeepAlive: limit}})
		ack := dial(t, s, "c").Hello(func(p *packets.Connect) { p.KeepAlive = 0 })
		if got := ack.Properties.ServerKeepAlive; got == nil || *got != want {
			t.Errorf("limit %v: Server Keep Alive %v, want %d", limit, got, want)
		}
	}
}
