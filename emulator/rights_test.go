package emulator_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// eveMay returns a policy by which ann may do everything, and eve what the arguments list, as JSON.
func eveMay(t testing.TB, publish, subscribe, keys string) *emulator.Policy {
	t.Helper()
	p, err := emulator.ParsePolicy("p", fmt.Appendf(nil, `[
  {"principals": {"usernames": ["ann"]}, "brokerResources": [{"method": "Connect"}, {"method": "Publish", "topics": ["#"]}, {"method": "Subscribe", "topics": ["#"]}],
    "stateStoreResources": [{"method": "ReadWrite", "keys": ["*"]}]},
  {"principals": {"usernames": ["eve"]}, "brokerResources": [{"method": "Connect"}, {"method": "Publish", "topics": ["%s", %s]}, {"method": "Subscribe", "topics": ["clients/eve/#", "open/#", %s]}],
    "stateStoreResources": [{"method": "ReadWrite", "keys": [%s]}]}]`, requestTopic, publish, subscribe, keys))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// subscribed subscribes eve to filters.
func subscribed(filters ...string) func(*rights) {
	return func(r *rights) {
		for _, filter := range filters {
			r.eve.Subscribe(filter, 1)
		}
	}
}

// left sets the will of eve.
func left(topic string, retain bool, delay uint32) func(*packets.Connect) {
	return func(p *packets.Connect) {
		p.WillFlag, p.WillTopic, p.WillMessage, p.WillRetain = true, topic, []byte("will"), retain
		p.WillProperties = &packets.Properties{WillDelayInterval: &delay}
	}
}

// rights is a test of one row: eve has a session, and loses her rights.
type rights struct {
	t        *testing.T
	s        *emulator.Server
	eve, ann *client
	ends     int // messages on open/end so far
}

// heard returns what a client receives until a message on open/end, which ann publishes.
func (r *rights) heard(c *client) (got []string) {
	r.t.Helper()
	r.ends++
	end := fmt.Sprintf("PUBLISH open/end q1 %d", r.ends)
	r.ann.Send(&packets.Publish{Topic: "open/end", QoS: 1, PacketID: r.ann.PacketID(), Payload: fmt.Append(nil, r.ends), Properties: &packets.Properties{}})
	for {
		p := c.Receive()
		c.Acknowledge(p)
		text := c.Describe(p)
		switch {
		case text == end:
			return got
		case !strings.HasPrefix(text, "PUBLISH open/end") && !strings.HasPrefix(text, "PUBACK"):
			got = append(got, text)
		}
	}
}

func (r *rights) publish(topic, text string) {
	r.t.Helper()
	r.ann.Send(&packets.Publish{Topic: topic, QoS: 1, PacketID: r.ann.PacketID(), Payload: []byte(text), Properties: &packets.Properties{}})
	for !strings.HasPrefix(r.ann.Describe(r.ann.Receive()), "PUBACK") {
	}
}

// TestRightsEnd: what a session holds is asked of the policy again, whenever the policy changes. With the old policy,
// everything arrives.
func TestRightsEnd(t *testing.T) {
	t.Parallel()
	const delivered = "PUBLISH secret/x q1 "
	rows := map[string]struct {
		will     func(*packets.Connect)
		hold     func(*rights)
		eve, ann []string // what they hear if the rights remain
		gone     bool     // a new server does not know it
		live     bool     // ends with the connection
	}{
		"a subscription":         {hold: subscribed("secret/#"), eve: []string{delivered + "after"}},
		"a shared subscription":  {hold: subscribed("$share/g/secret/#"), eve: []string{delivered + "after"}},
		"two of them":            {hold: subscribed("secret/+", "$share/g/secret/#"), eve: []string{delivered + "after", delivered + "after"}},
		"a will":                 {will: left("alarms/fire", true, 0), ann: []string{"PUBLISH alarms/fire q0 will"}},
		"a delayed will":         {will: left("alarms/fire", false, 5), ann: []string{"PUBLISH alarms/fire q0 will"}},
		"a delayed retained one": {will: left("alarms/fire", true, 5), ann: []string{"PUBLISH alarms/fire q0 will"}},
		"a message without PUBACK": {eve: []string{delivered + "before", delivered + "after"}, hold: func(r *rights) {
			r.eve.Subscribe("secret/#", 1)
			r.publish("secret/x", "before")
			r.eve.Receive()
		}},
		"a queued message of a subscription that has ended": {eve: []string{delivered + "1", delivered + "2"}, hold: func(r *rights) {
			r.eve.Subscribe("secret/#", 1)
			r.publish("secret/x", "1")
			r.publish("secret/x", "2")
			r.eve.Send(&packets.Unsubscribe{PacketID: r.eve.PacketID(), Properties: &packets.Properties{}, Topics: []string{"secret/#"}})
			for r.eve.Describe(r.eve.Receive()) != "UNSUBACK 0" {
			}
		}},
		"a delayed request": {live: true, eve: nil, ann: []string{"PUBLISH echo/r q1 +OK"}, hold: func(r *rights) {
			r.s.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Delay: 2 * time.Second} })
			request := r.eve.publication("SET", "k", "v")
			request.Properties.ResponseTopic = "echo/r"
			r.eve.Send(request)
			r.eve.Expect("PUBACK 0x00")
			r.s.Intercept(nil)
		}},
		"a delayed reply": {live: true, ann: []string{"PUBLISH echo/r q1 +OK"}, hold: func(r *rights) {
			r.s.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{DelayReply: 2 * time.Second} })
			request := r.eve.publication("SET", "k", "v")
			request.Properties.ResponseTopic = "echo/r"
			r.eve.Send(request)
			r.eve.Expect("PUBACK 0x00")
			r.s.Intercept(nil)
		}},
	}
	for name, row := range rows {
		for _, when := range []string{"connected", "away", "restarted"} {
			for _, taken := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%t", name, when, taken), func(t *testing.T) {
					t.Parallel()
					before := eveMay(t, `"alarms/#", "echo/#"`, `"secret/#", "echo/#"`, `"*"`)
					after := before
					if taken {
						after = eveMay(t, `"open/#"`, `"open/#"`, `"open*"`)
					}
					o := emulator.Options{Policy: before, CheckLogin: func(string, []byte) bool { return true }, Data: emulator.Data{File: filepath.Join(t.TempDir(), "data")}}
					s, err := emulator.New(o)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { s.Close() }()
					r := &rights{t: t, s: s}
					r.eve = dial(t, s, "eve")
					change := []func(*packets.Connect){as("eve"), remember}
					if row.will != nil {
						change = append(change, row.will)
					}
					if code := r.eve.Hello(change...).ReasonCode; code != 0 {
						t.Fatalf("CONNACK %#x", code)
					}
					r.eve.Subscribe("open/#", 1)
					r.ann = connect(t, s, "ann", as("ann"))
					if row.hold != nil {
						row.hold(r)
					}
					listen := func() {
						r.ann = connect(t, s, "ann", as("ann"))
						r.ann.Send(&packets.Subscribe{PacketID: r.ann.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{
							{Topic: "open/#", QoS: 1}, {Topic: "alarms/#", QoS: 1}, {Topic: "echo/#", QoS: 1},
						}})
						r.ann.Expect("SUBACK 1 1 1")
					}
					switch when {
					case "connected":
						s.SetPolicy(after)
						listen()
					case "away":
						delayed := row.will != nil && strings.Contains(name, "delayed") || row.live
						if taken && !delayed && row.will != nil {
							return // the will was published while it was allowed
						}
						r.eve.Conn.Close()
						await.State(t, s, func(st emulator.State) bool { return st.Clients == 1 })
						if row.live {
							return // its client cannot be away
						}
						s.SetPolicy(after)
						listen()
					case "restarted":
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
						o.Policy = after
						if s, err = emulator.New(o); err != nil {
							t.Fatal(err)
						}
						r.s = s
						listen()
					}
					s.FastForward(10 * time.Second)
					gotAnn := r.heard(r.ann)
					r.publish("secret/x", "after")
					r.eve = dial(t, s, "eve")
					if ack := r.eve.Hello(as("eve"), remember); ack.ReasonCode != 0 || ack.SessionPresent != (when != "restarted") {
						t.Fatalf("CONNACK %#x, session present %t", ack.ReasonCode, ack.SessionPresent)
					}
					if when == "restarted" {
						r.eve.Subscribe("open/#", 1)
					}
					gotEve := r.heard(r.eve)
					wantEve, wantAnn := row.eve, row.ann
					if taken || when == "restarted" {
						wantEve, wantAnn = nil, nil
					}
					if diff := cmp.Diff(wantEve, gotEve); diff != "" {
						t.Errorf("eve (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(wantAnn, gotAnn); diff != "" {
						t.Errorf("ann (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// TestRightsEndOnRedis: new rules end the connections of Redis clients, with their subscriptions and transactions.
func TestRightsEndOnRedis(t *testing.T) {
	t.Parallel()
	o := emulator.Options{Policy: eveMay(t, `"x"`, `"x"`, `"*"`), CheckLogin: func(string, []byte) bool { return true }, RedisNotify: "KEA"}
	for name, hold := range map[string]func(*emulator.Server, *redistest.Client){
		"nothing":       func(*emulator.Server, *redistest.Client) {},
		"subscriptions": func(_ *emulator.Server, c *redistest.Client) { c.Do(t, "PSUBSCRIBE", "*") },
		"a transaction": func(_ *emulator.Server, c *redistest.Client) {
			c.Expect(t, "+OK\r\n", "WATCH", "k")
			c.Expect(t, "+OK\r\n", "MULTI")
			c.Expect(t, "+QUEUED\r\n", "SET", "k", "stolen")
		},
		"a delayed command": func(s *emulator.Server, c *redistest.Client) {
			if _, err := s.AddFault(emulator.Fault{Verb: "SET", Delay: "5s"}); err != nil {
				t.Fatal(err)
			}
			if err := c.Send("SET", "k", "stolen"); err != nil {
				t.Fatal(err)
			}
			for s.Faults()[0].Fired == 0 {
				runtime.Gosched()
			}
		},
	} {
		s, c := startWithRedis(t, o)
		c.Expect(t, "+OK\r\n", "AUTH", "eve", "secret")
		hold(s, c)
		s.SetPolicy(eveMay(t, `"x"`, `"x"`, `"open*"`))
		s.FastForward(10 * time.Second)
		if frame, err := c.Frame(); err == nil {
			t.Errorf("%s: %s", name, frame)
		}
		if _, found := s.Get("k"); found {
			t.Errorf("%s: a command ran", name)
		}
	}
}

// TestResponseTopicRights: outside the client's own topics, a response topic needs Publish as well as Subscribe.
func TestResponseTopicRights(t *testing.T) {
	t.Parallel()
	own := "clients/eve/services/statestore/_any_/command/invoke/response"
	for _, row := range []struct {
		topic              string
		subscribe, publish bool
		allowed            bool
	}{
		{own, true, false, true},
		{hexResponse("eve"), true, false, true},
		{"clients/eve/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke", true, false, true},
		{"clients/bob/response", true, false, false},
		{"clients/bob/response", true, true, true},
		{"commands/valve", true, false, false},
		{"commands/valve", false, true, false},
		{"commands/valve", true, true, true},
		{hexResponse("bob"), true, false, false},
	} {
		topic := func(has bool) string {
			if has {
				return `"` + row.topic + `"`
			}
			return `"nothing"`
		}
		s := emulator.Start(t, trusting(eveMay(t, topic(row.publish), topic(row.subscribe), `"*"`)))
		r := &rights{t: t, s: s, ann: connect(t, s, "ann", as("ann")), eve: dial(t, s, "eve")}
		r.ann.Subscribe("#", 1)
		if code := r.eve.Hello(as("eve")).ReasonCode; code != 0 {
			t.Fatalf("CONNACK %#x", code)
		}
		for _, words := range [][]string{{"SET", "k", "text"}, {"GET", "k"}, {"DEL", "k"}} {
			request := r.eve.publication(words...)
			request.Properties.ResponseTopic = row.topic
			r.eve.Send(request)
			want := "PUBACK 0x87"
			if row.allowed {
				want = "PUBACK 0x00"
			}
			for {
				if got := r.eve.Describe(r.eve.Receive()); strings.HasPrefix(got, "PUBACK") {
					if got != want {
						t.Errorf("%+v: %v: %s", row, words, got)
					}
					break
				}
			}
		}
		if got := len(r.heard(r.ann)); got > 0 != row.allowed {
			t.Errorf("%+v: ann has heard %d messages", row, got)
		}
	}
}

// TestExplanations: one refusal of a packet is explained, whatever the number of rules and filters.
func TestExplanations(t *testing.T) {
	t.Parallel()
	var rules strings.Builder
	for i := range 300 {
		fmt.Fprintf(&rules, `{"principals": {"usernames": ["eve"]}, "brokerResources": [{"method": "Subscribe", "topics": ["a/%d/{principal.clientId}/+/#"]}]},`, i)
	}
	p, err := emulator.ParsePolicy("p", []byte("["+rules.String()+onePolicy[1:len(onePolicy)-1]+`, {"principals": {"usernames": ["eve"]}, "brokerResources": [{"method": "Connect"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer // written with the server locked
	o := trusting(p)
	o.Observe, o.Log = func(emulator.Event) {}, slog.New(slog.NewTextHandler(&log, nil))
	s := emulator.Start(t, o)
	eve := dial(t, s, "c")
	if code := eve.Hello(as("eve")).ReasonCode; code != 0 {
		t.Fatalf("CONNACK %#x", code)
	}
	subscribe := &packets.Subscribe{PacketID: 1, Properties: &packets.Properties{}}
	for i := range 1000 {
		subscribe.Subscriptions = append(subscribe.Subscriptions, packets.SubOptions{Topic: fmt.Sprint("b/", i)})
	}
	eve.Send(subscribe)
	eve.Expect("SUBACK" + strings.Repeat(" 135", 1000))
	s.FastForward(2 * time.Second)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, others := log.String(), 0 // counted each second, so perhaps in several lines
	for _, line := range regexp.MustCompile(`times=(\d+)`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(line[1])
		others += n
	}
	if explained := strings.Count(text, "rule="); explained != 1 || others != 999 {
		t.Errorf("%d explained and %d counted; %.2000s", explained, others, text)
	}
}
