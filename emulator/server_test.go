package emulator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/testcert"
	"github.com/sscli/sscli/internal/wire"
)

func TestReplyPacket(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := connect(t, s, "c")
	sent := c.ask("SET k v")
	c.Expect("PUBACK 0x00")
	p := c.Receive().Content.(*packets.Publish)
	entry, _ := s.Get("k")
	want := &packets.Publish{
		Topic: "clients/c/response", QoS: 1, PacketID: p.PacketID, Payload: []byte("+OK\r\n"),
		Properties: &packets.Properties{
			ContentType: "application/octet-stream", CorrelationData: sent.Properties.CorrelationData,
			User: []packets.User{{Key: "__stat", Value: "200"}, {Key: "__ts", Value: entry.Version.String()}, {Key: "__protVer", Value: "1.0"}},
		},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

// TestOneFlight: a client may send everything before the first reply.
func TestOneFlight(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := dial(t, s, "c")
	var flight bytes.Buffer
	for _, p := range []io.WriterTo{
		&packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: "c", CleanStart: true, Properties: &packets.Properties{}},
		&packets.Subscribe{PacketID: 1, Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: c.responseTopic(), QoS: 1}}},
		c.publication("SET", "k", "v"),
		c.publication("GET", "k"),
	} {
		if _, err := p.WriteTo(&flight); err != nil {
			t.Fatal(err)
		}
	}
	c.Send(&flight)
	c.Expect("CONNACK 0x00", "SUBACK 1", "PUBACK 0x00", "reply +OK", "PUBACK 0x00", "reply $1\r\nv")
}

func TestNoContentType(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NoContentType: true}})
	c := connect(t, s, "c")
	c.ask("GET k")
	c.Expect("PUBACK 0x00")
	if p := c.Receive().Content.(*packets.Publish); p.Properties.ContentType != "" {
		t.Errorf("content type %q", p.Properties.ContentType)
	}
}

// TestSilence: after a request that gets no reply, the test sends one that does. Any packet in between is an
// error.
func TestSilence(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*packets.Publish)
		want   []string
	}{
		{"QoS 0", func(p *packets.Publish) { p.QoS, p.PacketID = 0, 0 }, nil},
		{"QoS 2", func(p *packets.Publish) { p.QoS = 2 }, []string{"PUBREC 0x00"}},
		{"no response topic", func(p *packets.Publish) { p.Properties.ResponseTopic = "" }, []string{"PUBACK 0x00"}},
		{"no correlation data", func(p *packets.Publish) { p.Properties.CorrelationData = nil }, []string{"PUBACK 0x00"}},
		{"no subscription", func(p *packets.Publish) { p.Properties.ResponseTopic = "nobody" }, []string{"PUBACK 0x00"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := emulator.Start(t)
			c := connect(t, s, "c")
			p := c.publication("SET", "k", "v")
			tt.change(p)
			c.Send(p)
			c.Expect(tt.want...)
			want := "$-1"
			st := s.State()
			if tt.name == "no subscription" { // the store does not notice that its reply has no subscriber
				want = "$1\r\nv"
				if st.Undelivered != 1 || st.Replies != 0 {
					t.Errorf("state %+v", st)
				}
			}
			c.do("GET k", want)
			if st := s.State(); want == "$-1" && st.Ignored != 1 {
				t.Errorf("state %+v", st)
			}
		})
	}
}

func TestReplyQoS(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := dial(t, s, "c")
	c.Hello()
	c.Subscribe("clients/+/response", 0)
	c.ask("GET k")
	c.Expect("PUBACK 0x00")
	if p := c.Receive().Content.(*packets.Publish); p.QoS != 0 {
		t.Errorf("QoS %d on a subscription with QoS 0", p.QoS)
	}
	d := dial(t, s, "d")
	d.Hello()
	d.Subscribe("clients/#", 2)
	d.ask("GET k")
	d.Expect("PUBACK 0x00", "reply $-1")
	c.Expect("PUBLISH clients/d/response q0 $-1") // it also gets the reply, like any subscriber
}

func TestForbiddenResponseTopic(t *testing.T) {
	t.Parallel()
	for topic, reason := range map[string]string{
		requestTopic: "0x90", "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8": "0x90", notifyPrefix + "x": "0x90",
		"clients/+": "0x82", "#": "0x82",
	} {
		for qos := range byte(3) {
			s := emulator.Start(t)
			c := connect(t, s, "c")
			p := c.publication("SET", "k", "v")
			p.Properties.ResponseTopic, p.QoS = topic, qos
			if qos == 0 {
				p.PacketID = 0
			}
			c.Send(p)
			c.Expect("DISCONNECT " + reason)
			c.Ended()
			if _, there := s.Get("k"); there {
				t.Errorf("%s: the request was processed", topic)
			}
		}
	}
}

// TestWillOnTheRequestTopic: a will message is not a request, and does not reach subscribers of the request
// topic.
func TestWillOnTheRequestTopic(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	spy := connect(t, s, "spy")
	spy.Subscribe("statestore/#", 2)
	c := connect(t, s, "c", func(p *packets.Connect) {
		p.WillFlag, p.WillTopic, p.WillMessage, p.WillQOS, p.WillRetain = true, requestTopic, wire.AppendRequest(nil, "SET", "k", "v"), 1, true
		p.WillProperties = &packets.Properties{}
	})
	c.Conn.Close()
	await.State(t, s, func(st emulator.State) bool { return st.Clients == 1 })
	spy.do("GET k", "$-1") // with no message before it
	spy.Subscribe("statestore/+/+/#", 1)
	spy.do("GET k", "$-1")
}

func TestRequestsGoNowhereElse(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	spy := connect(t, s, "spy")
	spy.Subscribe("statestore/#", 1)
	c := connect(t, s, "c")
	c.do("GET k", "$-1")
	spy.do("GET k", "$-1") // with no message before it
}

func TestNotifications(t *testing.T) {
	t.Parallel()
	for _, subscribed := range []bool{false, true} {
		t.Run(fmt.Sprintf("subscribed %t", subscribed), func(t *testing.T) {
			s := emulator.Start(t)
			c := connect(t, s, "c")
			if subscribed {
				c.Subscribe(notifyPrefix+"63/command/notify/+", 1)
				c.Subscribe("clients/#", 1)
			}
			c.do("KEYNOTIFY k", "+OK")
			other := connect(t, s, "other")
			for i := range 20 {
				other.do(fmt.Sprintf("SET k %d", i), "+OK")
			}
			other.do("DEL k", ":1")
			c.ask("SET k mine")
			c.ask("GET k")
			var want []string
			for i := range 20 {
				want = append(want, fmt.Sprintf("notify 6B SET VALUE %d", i))
			}
			want = append(want, "notify 6B DELETE")
			if subscribed { // to the replies to the other client
				want = nil
				for i := range 20 {
					want = append(want, fmt.Sprintf("notify 6B SET VALUE %d", i), "PUBLISH clients/other/response q1 +OK")
				}
				want = append(want, "notify 6B DELETE", "PUBLISH clients/other/response q1 :1")
			}
			c.Expect(append(want, "PUBACK 0x00", "notify 6B SET VALUE mine", "reply +OK", "PUBACK 0x00", "reply $4\r\nmine")...)
		})
	}
}

func TestNotificationPacket(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := connect(t, s, "client-id1")
	c.do("KEYNOTIFY SOMEKEY", "+OK")
	version, err := s.Set("SOMEKEY", "abc")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Receive().Content.(*packets.Publish)
	want := &packets.Publish{
		Topic: "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/636C69656E742D696431/command/notify/534F4D454B4559",
		QoS:   1, PacketID: p.PacketID, Payload: []byte("*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$3\r\nabc\r\n"),
		Properties: &packets.Properties{
			ContentType: "application/octet-stream", User: []packets.User{{Key: "__ts", Value: version.String()}},
		},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("notification (-want +got):\n%s", diff)
	}
}

func TestDisconnectEndsRegistrations(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"DISCONNECT", "close"} {
		t.Run(how, func(t *testing.T) {
			s := emulator.Start(t)
			c := connect(t, s, "c", remember)
			c.do("KEYNOTIFY k", "+OK")
			if how == "DISCONNECT" {
				c.Send(&packets.Disconnect{Properties: &packets.Properties{}})
			}
			c.Conn.Close()
			await.State(t, s, func(st emulator.State) bool { return st.Clients == 0 && st.Registrations == 0 })
			if _, err := s.Set("k", "v"); err != nil {
				t.Fatal(err)
			}
			d := dial(t, s, "c")
			if ack := d.Hello(remember); !ack.SessionPresent {
				t.Error("the session is gone")
			}
			d.do("KEYNOTIFY k STOP", ":0")
		})
	}
}

func TestTakeOver(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	old := connect(t, s, "c")
	for i := range 20 {
		old.do("KEYNOTIFY k", "+OK")
		c := connect(t, s, "c")
		old.Expect("DISCONNECT 0x8e")
		old.Ended()
		if st := s.State(); st.Clients != 1 || st.Registrations != 0 {
			t.Fatalf("round %d: state %+v", i, st)
		}
		c.do("SET k v", "+OK")
		old = c
	}
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 1 })
	old.do("GET k", "$1\r\nv")
}

func TestReceiveMaximum(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := connect(t, s, "c", func(p *packets.Connect) { p.Properties.ReceiveMaximum = pointer(uint16(1)) })
	c.do("KEYNOTIFY k", "+OK")
	c.Subscribe("app", 1)
	c.Subscribe("app2", 2)
	for _, v := range []string{"1", "2"} {
		if _, err := s.Set("k", v); err != nil {
			t.Fatal(err)
		}
	}
	other := connect(t, s, "other")
	other.Send(&packets.Publish{Topic: "app", QoS: 1, PacketID: 9, Payload: []byte("x"), Properties: &packets.Properties{}})
	other.Expect("PUBACK 0x00")
	other.Send(&packets.Publish{Topic: "app2", QoS: 2, PacketID: 10, Payload: []byte("y"), Properties: &packets.Properties{}})
	other.Expect("PUBREC 0x00")
	other.Send(&packets.Pubrel{PacketID: 10, Properties: &packets.Properties{}})
	other.Expect("PUBCOMP 0x00")
	other.do("GET k", "$1\r\n2")

	p := c.Receive()
	if got := c.Describe(p); got != "notify 6B SET VALUE 1" {
		t.Fatalf("got %s", got)
	}
	// One delivery is unacknowledged. Before its PUBACK, the server may send only other packets.
	c.Send(&packets.Pingreq{})
	c.Expect("PINGRESP")
	c.ask("GET k")
	c.Expect("PUBACK 0x00")
	c.Send(&packets.Pingreq{})
	c.Expect("PINGRESP")
	c.Acknowledge(p)
	rest := map[string]bool{"notify 6B SET VALUE 2": true, "PUBLISH app q1 x": true, "PUBLISH app2 q2 y": true, "reply $1\r\n2": true}
	for len(rest) > 0 {
		p := c.Receive()
		got := c.Describe(p)
		if !rest[got] {
			t.Fatalf("got %s", got)
		}
		delete(rest, got)
		c.Send(&packets.Pingreq{})
		c.Expect("PINGRESP")
		if pub := p.Content.(*packets.Publish); pub.QoS == 2 {
			c.Send(&packets.Pubrec{PacketID: pub.PacketID, Properties: &packets.Properties{}})
			c.Expect("PUBREL 0x00")
			c.Send(&packets.Pubcomp{PacketID: pub.PacketID, Properties: &packets.Properties{}})
			continue
		}
		c.Acknowledge(p)
	}
	c.ask("DEL k")
	c.Expect("PUBACK 0x00", "notify 6B DELETE", "reply :1")
}

// TestReplyRefused: a reply that fits into no session is counted as undelivered.
func TestReplyRefused(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Limits: emulator.Limits{Queue: 1}})
	away := dial(t, s, "away")
	away.Hello(func(p *packets.Connect) { p.Properties.SessionExpiryInterval = pointer(uint32(3600)) })
	away.Subscribe("replies", 1)
	away.Conn.Close()
	s.Await(t.Context(), func(st emulator.State) bool { return st.Clients == 0 })
	c := connect(t, s, "c")
	for range 2 {
		p := c.publication("GET", "k")
		p.Properties.ResponseTopic = "replies"
		c.Send(p)
		c.Expect("PUBACK 0x00")
	}
	if st := s.State(); st.Replies != 1 || st.Undelivered != 1 {
		t.Errorf("state %+v", st)
	}
}

func TestMaximumPacketSize(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := connect(t, s, "c", func(p *packets.Connect) { p.Properties.MaximumPacketSize = pointer(uint32(400)) })
	big := strings.Repeat("x", 400)
	c.do("KEYNOTIFY k", "+OK")
	if _, err := s.Set("k", big); err != nil {
		t.Fatal(err)
	}
	c.ask("GET k")
	c.Expect("PUBACK 0x00")
	c.do("GET other", "$-1")
	if st := s.State(); st.TooLarge != 2 || st.Notifications != 0 {
		t.Errorf("state %+v", st)
	}
}

func TestOwnLimits(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Limits: emulator.Limits{MaxPacketSize: 500, ReceiveMaximum: 3}})
	c := dial(t, s, "c")
	ack := c.Hello()
	if got := ack.Properties.MaximumPacketSize; got == nil || *got != 500 {
		t.Errorf("Maximum Packet Size %v", got)
	}
	if got := ack.Properties.ReceiveMaximum; got == nil || *got != 3 {
		t.Errorf("Receive Maximum %v", got)
	}
	c.ask("SET k " + strings.Repeat("x", 500))
	c.Expect("DISCONNECT 0x95")
	c.Ended()

	c = connect(t, s, "c")
	s.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{NoPuback: true} })
	for range 3 {
		c.ask("GET k")
		c.Expect("reply $-1")
	}
	c.ask("GET k")
	c.Expect("DISCONNECT 0x93")
	c.Ended()
}

func TestUsers(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{
		CheckLogin: emulator.Passwords(map[string]string{"ann": "secret", "bob": "other"}),
		Policy:     parseRules(t, "ann:ReadWrite:*", "bob:Read:*"),
	})
	login := func(user, password string) func(*packets.Connect) {
		return func(p *packets.Connect) {
			p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = true, user, true, []byte(password)
		}
	}
	for _, wrong := range []func(*packets.Connect){login("ann", "other"), login("eve", "secret"), func(*packets.Connect) {}} {
		c := dial(t, s, "c")
		if ack := c.Hello(wrong); ack.ReasonCode != 0x86 {
			t.Errorf("CONNACK %#x, want 0x86", ack.ReasonCode)
		}
		c.Ended()
	}
	ann := connect(t, s, "c", login("ann", "secret"))
	ann.do("SET k v", "+OK")
	ann.Send(&packets.Disconnect{Properties: &packets.Properties{}})
	ann.Ended()
	await.State(t, s, func(st emulator.State) bool { return st.Clients == 0 })
	c := connect(t, s, "c", login("bob", "other"))
	c.do("SET k v", "-ERR not authorized")
	c.do("GET k", "$1\r\nv")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{CheckToken: func(token []byte, _ time.Time) (emulator.Login, error) {
		if string(token) != "good" {
			return emulator.Login{}, errors.New("not a token")
		}
		return emulator.Login{}, nil
	}})
	with := func(method, token string) func(*packets.Connect) {
		return func(p *packets.Connect) { p.Properties.AuthMethod, p.Properties.AuthData = method, []byte(token) }
	}
	for _, tt := range []struct {
		connect func(*packets.Connect)
		want    byte
	}{
		{with("K8S-SAT", "bad"), 0x87},
		{with("OTHER", "good"), 0x8c},
		{func(*packets.Connect) {}, 0x86},
	} {
		c := dial(t, s, "c")
		if ack := c.Hello(tt.connect); ack.ReasonCode != tt.want {
			t.Errorf("CONNACK %#x, want %#x", ack.ReasonCode, tt.want)
		}
		c.Ended()
	}
	c := dial(t, s, "c")
	if ack := c.Hello(with("K8S-SAT", "good")); ack.ReasonCode != 0 || ack.Properties.AuthMethod != "K8S-SAT" {
		t.Fatalf("CONNACK %v", ack)
	}
	c.Send(&packets.Auth{ReasonCode: 0x19, Properties: &packets.Properties{AuthMethod: "K8S-SAT", AuthData: []byte("good")}})
	if auth, ok := c.Receive().Content.(*packets.Auth); !ok || auth.ReasonCode != 0 {
		t.Errorf("got %v, want AUTH 0x00", auth)
	}
	s.RefuseReauth(func(id string, token []byte) byte {
		if id != "c" || string(token) != "good" {
			t.Errorf("%q shows %q", id, token)
		}
		return 0x18
	})
	c.Send(&packets.Auth{ReasonCode: 0x19, Properties: &packets.Properties{AuthMethod: "K8S-SAT", AuthData: []byte("good")}})
	if auth, ok := c.Receive().Content.(*packets.Auth); !ok || auth.ReasonCode != 0x18 || auth.Properties.AuthMethod != "K8S-SAT" {
		t.Errorf("got %v, want AUTH 0x18", auth)
	}
	s.RefuseReauth(nil)
	c.Send(&packets.Auth{ReasonCode: 0x19, Properties: &packets.Properties{AuthMethod: "K8S-SAT", AuthData: []byte("bad")}})
	c.Expect("DISCONNECT 0x87")
	c.Ended()
}

// TestAuthenticationMethod: a server that does not check tokens accepts any token of K8S-SAT, and refuses
// other methods [MQTT-4.12.0-1].
func TestAuthenticationMethod(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	for method, want := range map[string]byte{"K8S-SAT": 0, "OTHER": 0x8c} {
		c := dial(t, s, "c")
		ack := c.Hello(func(p *packets.Connect) { p.Properties.AuthMethod, p.Properties.AuthData = method, []byte("x") })
		if ack.ReasonCode != want {
			t.Errorf("%s: CONNACK %#x, want %#x", method, ack.ReasonCode, want)
		}
	}
}

// TestLimits: the limits of the broker can be set with options of the server.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{RefuseFilters: []string{"test/nosubscribe"}, Limits: emulator.Limits{
		ReceiveMaximum: 20,
		KeepAlive:      time.Minute, TopicAliasMaximum: 7, MaxSubscriptions: 2, Queue: 1, MaxRetained: 1, MaxSessions: 2,
	}})
	c := dial(t, s, "c")
	p := c.Hello(func(p *packets.Connect) {
		p.KeepAlive, p.Properties.SessionExpiryInterval = 120, new(uint32)
		*p.Properties.SessionExpiryInterval = 60
	}).Properties
	if p.ServerKeepAlive == nil || *p.ServerKeepAlive != 60 || *p.TopicAliasMaximum != 7 || *p.ReceiveMaximum != 20 {
		t.Errorf("CONNACK %+v", p)
	}
	subscribe := func(filters ...string) string {
		subs := make([]packets.SubOptions, len(filters))
		for i, f := range filters {
			subs[i] = packets.SubOptions{Topic: f, QoS: 1}
		}
		c.Send(&packets.Subscribe{PacketID: 1, Subscriptions: subs, Properties: &packets.Properties{}})
		return fmt.Sprintf("% x", c.Receive().Content.(*packets.Suback).Reasons)
	}
	if got := subscribe("test/nosubscribe", "t", "test/#", "c"); got != "80 01 01 97" {
		t.Errorf("SUBACK %s", got)
	}
	c.Conn.Close()
	s.Await(t.Context(), func(st emulator.State) bool { return st.Connections == 0 })
	d := connect(t, s, "d")
	publish := func(topic string, retain bool) byte {
		d.Send(&packets.Publish{Topic: topic, QoS: 1, PacketID: 1, Retain: retain, Payload: []byte("x"), Properties: &packets.Properties{}})
		return d.Receive().Content.(*packets.Puback).ReasonCode
	}
	if a, b, e, f := publish("t", false), publish("t", false), publish("a", true), publish("b", true); a != 0 || b != 0x97 || e != 0x10 || f != 0x97 {
		t.Errorf("PUBACK %#x %#x, retained %#x %#x", a, b, e, f)
	}
	connect(t, s, "e") // ends the session of c
	if ack := dial(t, s, "f").Hello(); ack.ReasonCode != 0x97 {
		t.Errorf("CONNACK %#x", ack.ReasonCode)
	}
}

func TestRefuseConnect(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	s.RefuseConnect(func(id, _ string) byte {
		if id == "busy" {
			return 0x89
		}
		return 0
	})
	c := dial(t, s, "busy")
	if ack := c.Hello(); ack.ReasonCode != 0x89 {
		t.Errorf("CONNACK %#x, want 0x89", ack.ReasonCode)
	}
	c.Ended()
	connect(t, s, "c").do("GET k", "$-1")
	s.RefuseConnect(nil)
	connect(t, s, "busy").do("GET k", "$-1")
}

func TestPolicyFunc(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
		return a.ClientID == "c" && a.On != "secret" || a.Method == emulator.Subscribe && a.On == "clients/d/response"
	})})
	c, d := connect(t, s, "c"), connect(t, s, "d")
	c.do("SET k v", "+OK")
	d.ask("GET k")
	d.Expect("PUBACK 0x87")
	c.Send(&packets.Publish{Topic: "secret", QoS: 1, PacketID: c.PacketID(), Properties: &packets.Properties{}})
	c.Expect("PUBACK 0x87")
	d.Send(&packets.Subscribe{PacketID: d.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: "other", QoS: 1}}})
	d.Expect("SUBACK 135")
	if st := s.State(); st.Requests != 1 {
		t.Errorf("state %+v", st)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert := testcert.New(t, nil, testcert.Leaf())
	s := emulator.Start(t, emulator.Options{TLS: cert.Server()})
	if !strings.HasPrefix(s.URL(), "mqtts://127.0.0.1:") {
		t.Errorf("URL %s", s.URL())
	}
	trust := cert.Trust()
	trust.ServerName = "127.0.0.1"
	c := dial(t, s, "c")
	c.Conn = tls.Client(c.Conn, trust)
	c.Hello()
	c.Subscribe(c.responseTopic(), 1)
	c.do("SET k v", "+OK")
	c.do("GET k", "$1\r\nv")
	s.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Disconnect: 0x89} })
	c.ask("GET k")
	c.Expect("DISCONNECT 0x89")
	c.Ended()
}

func TestFastForward(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := connect(t, s, "c")
	for _, key := range []string{"a", "b"} {
		c.do("KEYNOTIFY "+key, "+OK")
	}
	c.do2("SET b 2 PX 7200000", "notify 62 SET VALUE 2")
	c.do2("SET a 1 PX 3600000", "notify 61 SET VALUE 1")
	before := s.Now()
	s.FastForward(time.Hour)
	if st := s.State(); st.Notifications != 3 || st.Keys != 1 {
		t.Errorf("state %+v", st)
	}
	s.FastForward(2 * time.Hour)
	c.Expect("notify 61 DELETE", "notify 62 DELETE")
	if d := s.Now().Sub(before); d < 3*time.Hour || d > 3*time.Hour+patience {
		t.Errorf("the clock moved by %v", d)
	}
	changes := s.Changes()
	for range 2 { // more than the clock can count
		s.FastForward(1<<63 - 1)
		if d := s.Now().Sub(before); d < 200*365*24*time.Hour {
			t.Errorf("the clock moved by %v", d)
		}
	}
	last := changes[len(changes)-1]
	// The store keeps expiry times of the wall clock, which may differ from the monotonic clock.
	if late := last.Time.Round(0).Sub(changes[0].Time.Round(0)); last.Cause != emulator.CauseExpired || late < 2*time.Hour || late > 2*time.Hour+patience {
		t.Errorf("b was removed by %s after %v", last.Cause, late)
	}
}

// do2 expects one packet between PUBACK and +OK.
func (c *client) do2(words, between string) {
	c.T.Helper()
	c.ask(words)
	c.Expect("PUBACK 0x00", between, "reply +OK")
}

// TestExpiryByItself: a key expires even if no request comes.
func TestExpiryByItself(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := connect(t, s, "c")
	c.do("KEYNOTIFY k", "+OK")
	c.do2("SET k v PX 3600000", "notify 6B SET VALUE v")
	c.do2("SET k v PX 20", "notify 6B SET VALUE v")
	c.Expect("notify 6B DELETE")
}

func TestSkew(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Skew: -2 * time.Minute})
	c := connect(t, s, "c")
	p := c.publication("SET", "k", "v")
	p.Properties.User[0].Value = fmt.Sprintf("%d:0:c", time.Now().UnixMilli())
	c.Send(p)
	c.Expect("PUBACK 0x00", "reply "+strings.TrimSuffix("-ERR "+wire.TextClockAhead+"\r\n", "\r\n"))
}

func TestIntercept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		action emulator.Action
		want   []string
		ends   bool
		stored bool
	}{
		{name: "nothing", want: []string{"PUBACK 0x00", "reply +OK"}, stored: true},
		{name: "Drop", action: emulator.Action{Drop: true}, want: []string{"PUBACK 0x00"}},
		{name: "Drop without PUBACK", action: emulator.Action{Drop: true, NoPuback: true}},
		{name: "Refuse", action: emulator.Action{Refuse: 0x97}, want: []string{"PUBACK 0x97"}},
		{name: "Disconnect", action: emulator.Action{Disconnect: 0x98}, want: []string{"DISCONNECT 0x98"}, ends: true},
		{name: "Cut", action: emulator.Action{Cut: true}, ends: true},
		{name: "CutAfter", action: emulator.Action{CutAfter: true}, ends: true, stored: true},
		{name: "DropReply", action: emulator.Action{DropReply: true}, want: []string{"PUBACK 0x00"}, stored: true},
		{name: "NoPuback", action: emulator.Action{NoPuback: true}, want: []string{"reply +OK"}, stored: true},
		{name: "PubackLast", action: emulator.Action{PubackLast: true}, want: []string{"reply +OK", "PUBACK 0x00"}, stored: true},
		{name: "Duplicate", action: emulator.Action{Duplicate: true}, want: []string{"PUBACK 0x00", "reply +OK", "reply +OK"}, stored: true},
		{name: "Rewrite", action: emulator.Action{Rewrite: func(a *emulator.Answer) { a.Payload = []byte("-1") }}, want: []string{"PUBACK 0x00", "reply -1"}, stored: true},
		{name: "Rewrite the topic", action: emulator.Action{Rewrite: func(a *emulator.Answer) { a.Topic = "elsewhere" }}, want: []string{"PUBACK 0x00"}, stored: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := emulator.Start(t)
			c := connect(t, s, "c")
			s.Intercept(func(r emulator.Request) emulator.Action {
				stamp, _ := r.Property(wire.PropTimestamp)
				if r.Verb() != "SET" || r.Key() != "k" || r.ClientID != "c" || r.ResponseTopic != c.responseTopic() || stamp != "1:0:client" {
					t.Errorf("request %+v", r)
				}
				s.Keys() // a hook may call methods of the server
				return tt.action
			})
			c.ask("SET k v")
			c.Expect(tt.want...)
			await.State(t, s, func(st emulator.State) bool { return st.Requests == 1 })
			s.Intercept(nil)
			if tt.ends {
				c.Ended()
			} else {
				c.do("GET other", "$-1")
			}
			if _, stored := s.Get("k"); stored != tt.stored {
				t.Errorf("stored: %t", stored)
			}
		})
	}
}

func TestInterceptProperties(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	c := connect(t, s, "c")
	s.Intercept(func(emulator.Request) emulator.Action {
		return emulator.Action{Rewrite: func(a *emulator.Answer) {
			a.Set("__stat", "503")
			a.Set("__stMsg", "busy")
			a.Delete("__protVer")
			a.CorrelationData, a.ContentType = []byte("wrong"), "text/plain"
		}}
	})
	c.ask("GET k")
	c.Expect("PUBACK 0x00")
	got := c.Receive().Content.(*packets.Publish).Properties
	want := &packets.Properties{
		ContentType: "text/plain", CorrelationData: []byte("wrong"),
		User: []packets.User{{Key: "__stat", Value: "503"}, {Key: "__stMsg", Value: "busy"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

func TestInterceptDelays(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Latency: time.Hour})
	c := connect(t, s, "c")
	s.Intercept(func(r emulator.Request) emulator.Action {
		switch r.Key() {
		case "slow":
			return emulator.Action{Delay: time.Hour}
		case "late":
			return emulator.Action{DelayReply: 5 * time.Hour, PubackLast: true}
		default:
			return emulator.Action{}
		}
	})
	c.ask("SET late 1")
	c.ask("SET slow 2")
	c.Expect("PUBACK 0x00")
	c.ask("SET plain 3")
	c.Expect("PUBACK 0x00")
	await.State(t, s, func(st emulator.State) bool { return st.Delayed == 3 })
	s.FastForward(time.Hour)
	c.Expect("reply +OK")
	if diff := cmp.Diff([]string{"late", "plain"}, s.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	s.FastForward(10 * time.Hour)
	c.Expect("reply +OK", "reply +OK", "PUBACK 0x00")
	if st := s.State(); st.Delayed != 0 {
		t.Errorf("state %+v", st)
	}
}

func TestMessageExpiry(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Latency: time.Hour})
	c := connect(t, s, "c")
	for _, seconds := range []uint32{3600, 7200} {
		p := c.publication("SET", fmt.Sprintf("k%d", seconds), "v")
		p.Properties.MessageExpiry = &seconds
		c.Send(p)
	}
	c.Expect("PUBACK 0x00", "PUBACK 0x00")
	// The requests did not arrive at the same time: both must be delivered, and the second must not have
	// expired.
	await.State(t, s, func(st emulator.State) bool { return st.Delayed == 2 })
	s.FastForward(90 * time.Minute)
	c.Expect("reply +OK")
	if diff := cmp.Diff([]string{"k7200"}, s.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if st := s.State(); st.Expired != 1 {
		t.Errorf("state %+v", st)
	}
}

func TestDelayedRequestOfAGoneClient(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Latency: time.Hour})
	c := connect(t, s, "c")
	c.ask("KEYNOTIFY k")
	c.ask("SET k v")
	await.State(t, s, func(st emulator.State) bool { return st.Delayed == 2 })
	s.DropAll()
	c = connect(t, s, "c")
	s.FastForward(time.Hour)
	if st := s.State(); st.Registrations != 0 || st.Keys != 1 {
		t.Errorf("state %+v", st)
	}
	c.Expect("reply +OK") // to the same topic
}

func TestDropAll(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	a, b, silent := connect(t, s, "a"), connect(t, s, "b"), dial(t, s, "")
	a.do("KEYNOTIFY k", "+OK")
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 3 })
	s.DropAll()
	if st := s.State(); st.Clients != 0 || st.Registrations != 0 {
		t.Errorf("state %+v", st)
	}
	a.Ended()
	b.Ended()
	silent.Ended()
	connect(t, s, "a").do("GET k", "$-1")
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Limits: emulator.Limits{Outbox: 10}})
	c := connect(t, s, "c", func(p *packets.Connect) { p.Properties.ReceiveMaximum = pointer(uint16(1)) })
	c.do("KEYNOTIFY k", "+OK")
	for i := range 30 {
		if _, err := s.Set("k", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	// One notification is sent but unacknowledged.
	for p := c.Receive(); ; p = c.Receive() {
		got := c.Describe(p)
		if got == "DISCONNECT 0x97" {
			break
		}
		if got != "notify 6B SET VALUE 0" {
			t.Fatalf("got %s", got)
		}
	}
	c.Ended()
	await.State(t, s, func(st emulator.State) bool { return st.Registrations == 0 })
}

func TestKeptReplies(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Latency: time.Hour})
	c := connect(t, s, "c", remember)
	c.do0("KEYNOTIFY k")
	s.FastForward(time.Hour)
	c.Expect("reply +OK")
	c.do0("SET k v")
	s.FastForward(time.Hour)
	// The first reply is sent but not acknowledged; the second comes while the client is disconnected.
	for range 2 {
		c.Receive()
	}
	c.do0("GET k")
	s.DropAll()
	s.FastForward(time.Hour)
	d := dial(t, s, "c")
	if ack := d.Hello(func(p *packets.Connect) { remember(p); p.Properties.ReceiveMaximum = pointer(uint16(1)) }); !ack.SessionPresent {
		t.Fatal("the session is gone")
	}
	// Both arrive in order, with DUP if they were sent before.
	for i, want := range []string{"reply +OK", "reply $1\r\nv"} {
		p := d.Receive()
		if got, dup := d.Describe(p), p.Content.(*packets.Publish).Duplicate; got != want || dup != (i == 0) {
			t.Errorf("got %s, DUP %t; want %s", got, dup, want)
		}
		d.Acknowledge(p)
	}
}

// do0 expects only the PUBACK.
func (c *client) do0(words string) {
	c.T.Helper()
	c.ask(words)
	c.Expect("PUBACK 0x00")
}

// TestOrdinaryMessages: an application's own messages pass independently of the store, even if both sides use
// the same packet identifiers.
func TestOrdinaryMessages(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	a, b := connect(t, s, "a"), connect(t, s, "b")
	a.Subscribe("app/+", 1)
	b.Send(&packets.Publish{Topic: "app/retained", QoS: 1, PacketID: b.PacketID(), Retain: true, Payload: []byte("r"), Properties: &packets.Properties{
		User: []packets.User{{Key: "name", Value: "value"}},
	}})
	if ack := b.Receive().Content.(*packets.Puback); len(ack.Properties.User) != 0 {
		t.Errorf("PUBACK with the user properties of the PUBLISH: %v", ack)
	}
	p := a.Receive()
	if diff := cmp.Diff([]packets.User{{Key: "name", Value: "value"}}, p.Content.(*packets.Publish).Properties.User); diff != "" {
		t.Errorf("user properties (-want +got):\n%s", diff)
	}
	a.Acknowledge(p)
	for i := range 50 {
		b.Send(&packets.Publish{Topic: "app/x", QoS: 1, PacketID: b.PacketID(), Payload: fmt.Append(nil, i), Properties: &packets.Properties{}})
		b.Expect("PUBACK 0x00")
		a.do3(fmt.Sprintf("PUBLISH app/x q1 %d", i))
	}
	c := dial(t, s, "c")
	c.Hello()
	c.Subscribe("$share/group/jobs", 1)
	c.Subscribe("app/retained", 0)
	c.Expect("PUBLISH app/retained q0 r")
	b.Send(&packets.Publish{Topic: "jobs", QoS: 0, Payload: []byte("j"), Properties: &packets.Properties{}})
	c.Expect("PUBLISH jobs q0 j")
}

// do3 expects a message while a request is in flight.
func (c *client) do3(message string) {
	c.T.Helper()
	c.ask("GET k")
	want := map[string]bool{message: true, "PUBACK 0x00": true, "reply $-1": true}
	for range len(want) {
		p := c.Receive()
		if got := c.Describe(p); !want[got] {
			c.T.Fatalf("got %s", got)
		}
		delete(want, c.Describe(p))
		c.Acknowledge(p)
	}
}

func TestMQTT3(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	conn := dial(t, s, "old").Conn
	// CONNECT of MQTT 3.1.1 as "old", SUBSCRIBE 1 to "t" with QoS 1, PUBLISH "x" to "t".
	exchange(t, conn, "\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03old"+"\x82\x06\x00\x01\x00\x01t\x01"+"\x30\x04\x00\x01tx",
		"\x20\x02\x00\x00"+"\x90\x03\x00\x01\x01"+"\x30\x04\x00\x01tx")
	// An MQTT 3.1.1 subscriber gets a reply without its properties.
	c := dial(t, s, "c")
	c.Hello()
	p := c.publication("GET", "k")
	p.Properties.ResponseTopic = "t"
	c.Send(p)
	c.Expect("PUBACK 0x00")
	exchange(t, conn, "", "\x32\x0a\x00\x01t\x00\x01$-1\r\n")
	// MQTT 3.1.1 servers send no DISCONNECT.
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("got %d bytes at the end, %v", n, err)
	}
}

// exchange sends bytes and expects the bytes in want.
func exchange(t *testing.T, conn net.Conn, send, want string) {
	t.Helper()
	if _, err := conn.Write([]byte(send)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadFull(conn, got); err != nil {
		t.Fatalf("got %q, want %q: %v", got[:n], want, err)
	}
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTakenAddress(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	other, err := emulator.New(emulator.Options{Listen: s.Addr().String()})
	if err == nil {
		other.Close()
		t.Fatal("the address is taken")
	}
	if want := fmt.Sprintf("listen on %s: address already in use", s.Addr()); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %q, want it to begin with %q", err, want)
	}
}

// TestListenerWithoutServer: New closes Options.Listener if it returns an error, whatever the error is.
func TestListenerWithoutServer(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, o := range map[string]emulator.Options{
		"InProcess cannot be combined with Listener": {InProcess: true},
		"open ":                  {Data: emulator.Data{File: filepath.Join(t.TempDir(), "missing", "data")}},
		"listen on ":             {WebSocket: taken.Addr().String()},
		"address already in use": {Redis: taken.Addr().String()},
	} {
		if o.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if _, err := emulator.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := o.Listener.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the listener was open", want)
		}
	}
}

func TestSetRefused(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{MaxKeys: 1})
	if _, err := s.Set("a", "1"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Set("b", "2")
	if err == nil || err.Error() != `set "b": the store answered: the quota has been exceeded` {
		t.Errorf("error %v", err)
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Await(ctx, func(emulator.State) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	result := make(chan error)
	go func() { result <- s.Await(t.Context(), func(emulator.State) bool { return false }) }()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, emulator.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := emulator.New(emulator.Options{Latency: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c, silent := connect(t, s, "c", remember), dial(t, s, "")
	c.do0("SET k v PX 3600000")
	// A client that does not read must not delay Close.
	stuck := connect(t, s, "stuck")
	stuck.do0("KEYNOTIFY k")
	s.FastForward(time.Hour)
	for range 20 {
		if _, err := s.Set("k", strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 3 })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	c.Expect("reply +OK", "DISCONNECT 0x8b")
	c.Ended()
	silent.Ended()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	stuck.Conn.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", s.Addr().String()); err == nil {
		conn.Close()
		t.Error("the address still answers")
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

func ExampleNew() {
	store, err := emulator.New(emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": "secret"})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	// Clients connect to store.URL().
	if _, err := store.Set("setpoint", "21.5"); err != nil {
		fmt.Println(err)
		return
	}
	entry, ok := store.Get("setpoint")
	fmt.Printf("%s %t\n", entry.Value, ok)
	// Output: 21.5 true
}

// A broker without a state store, such as Mosquitto, gets one.
func ExampleAttach() {
	ctx := context.Background()
	store, err := emulator.Attach(ctx, emulator.AttachOptions{Address: "127.0.0.1:1883", ClientID: "statestore", Data: emulator.Data{File: "state.db"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	<-store.Done()
	fmt.Println(store.Err())
}

// exampleTest takes the place of a test's *testing.T.
type exampleTest struct{ cleanups []func() }

func (t *exampleTest) Helper()                           {}
func (t *exampleTest) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t *exampleTest) Logf(string, ...any)               {}
func (t *exampleTest) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }

func ExampleStart() {
	t := new(exampleTest) // in a test, use its *testing.T

	store := emulator.Start(t)
	fmt.Println(strings.HasPrefix(store.URL(), "mqtt://127.0.0.1:"))

	t.cleanups[0]() // a test calls it at its end
	// Output: true
}

// TestAfterClose: after Close, changes to the store are refused and nothing hangs, with and without a data
// file.
func TestAfterClose(t *testing.T) {
	t.Parallel()
	for _, data := range []emulator.Data{{}, newData(t)} {
		server := emulator.Start(t, emulator.Options{Data: data})
		if _, err := server.Set("a", "1"); err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Set("a", "2"); !errors.Is(err, emulator.ErrClosed) {
			t.Errorf("data %v: Set after Close: %v", data, err)
		}
		if resp := server.Do(emulator.NewRequest("c", wire.AppendRequest(nil, "DEL", "a"))); len(resp.Payload) > 0 {
			t.Errorf("data %v: Do after Close: %q", data, resp.Payload)
		}
		server.FastForward(time.Hour)
		if e, found := server.Get("a"); !found || string(e.Value) != "1" || len(server.Keys()) != 1 {
			t.Errorf("data %v: Get after Close: %v, %q", data, found, e.Value)
		}
	}
}
