package emulator_test

import (
	"testing"
	"unicode/utf8"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
)

func parseRules(t *testing.T, texts ...string) *emulator.Policy {
	t.Helper()
	p, err := emulator.ParseRules(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// FuzzPrincipal: {principal.clientId} matches exactly the client id, whatever characters it has. A name
// that is not UTF-8, which MQTT cannot carry, has no keys.
func FuzzPrincipal(f *testing.F) {
	f.Add("c", "c")
	f.Add("*", "x")
	f.Add("[a]?", "ab")
	f.Add("{principal.username}", "u")
	f.Add("\x80", "\x80")
	f.Add("\uFFFD", "\x80")
	f.Fuzz(func(t *testing.T, clientID, key string) {
		p, err := emulator.ParseRules("*:Read:{principal.clientId}")
		if err != nil {
			t.Fatal(err)
		}
		want := clientID == key && key != "" && utf8.ValidString(clientID)
		if got := p.AllowsKey(clientID, clientID, key, false); got != want {
			t.Errorf("client %q, key %q: %t", clientID, key, got)
		}
		if p.AllowsKey(clientID, clientID+"2", key, false) {
			t.Errorf("another user has the keys of client %q", clientID)
		}
	})
}

// as logs in with a password that trusting accepts.
func as(user string) func(*packets.Connect) {
	return func(p *packets.Connect) { p.UsernameFlag, p.Username = true, user }
}

// trusting returns options with rules, and with a login check that accepts any user.
func trusting(rules *emulator.Policy) emulator.Options {
	return emulator.Options{Policy: rules, CheckLogin: func(string, []byte) bool { return true }}
}

func TestRules(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, trusting(parseRules(t,
		"ann:ReadWrite:colors/*", "ann:Read:number[0-9]", "ann:Write:char?", "bob:ReadWrite:{principal.clientId}/*", "*:Read:public")))
	ann := connect(t, s, "a", as("ann"))
	ann.do("SET colors/red 1", "+OK")
	ann.do("GET colors/red", "$1\r\n1")
	ann.do("DEL colors/red", ":1")
	ann.do("SET number1 1", "-ERR not authorized")
	ann.do("VDEL number1 1", "-ERR not authorized")
	ann.do("GET number1", "$-1")
	ann.do("GET number10", "-ERR not authorized")
	ann.do("SET char1 1", "+OK")
	ann.do("GET char1", "-ERR not authorized")
	ann.do("KEYNOTIFY char1", "-ERR not authorized")
	ann.do("KEYNOTIFY number1", "+OK")
	ann.do("KEYNOTIFY number1 STOP", "+OK")
	ann.do("GET public", "$-1")
	ann.do("SET public 1", "-ERR not authorized")
	bob := connect(t, s, "bob", as("bob"))
	bob.do("SET bob/1 1", "+OK")
	bob.do("SET bobby/1 1", "-ERR not authorized")
	// A client id that differs from the user name gives no rights.
	connect(t, s, "other", as("bob")).do("SET other/1 1", "-ERR not authorized")
	// A client without a user name has the rules for everybody.
	nobody := connect(t, s, "n")
	nobody.do("GET public", "$-1")
	nobody.do("GET colors/red", "-ERR not authorized")
}

func TestRulesForTopics(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, trusting(parseRules(t, "ann:Read:x")))
	subscribe := func(c *client, filter, want string) {
		t.Helper()
		c.Send(&packets.Subscribe{PacketID: c.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: filter, QoS: 1}}})
		if got := c.Describe(c.Receive()); got != want {
			t.Errorf("%s subscribes to %s: %s, want %s", c.ID, filter, got, want)
		}
	}
	ann := connect(t, s, "a", as("ann"))
	const allowed, refused = "SUBACK 1", "SUBACK 135"
	for filter, want := range map[string]string{
		"clients/a/services/statestore/_any_/command/invoke/response": allowed,
		"clients/a/#":                        allowed,
		"clients/61/statestore/v1/x":         refused,
		hexResponse("a"):                     allowed,
		notifyPrefix + "61/command/notify/+": allowed,
		notifyPrefix + "62/command/notify/+": refused,
		notifyPrefix + "+/command/notify/+":  refused,
		notifyPrefix + "#":                   refused,
		"clients/ab/response":                refused,
		"clients/+/response":                 refused,
		"clients/#":                          refused,
		"#":                                  refused,
		"+/a/response":                       refused,
		"$share/g/#":                         refused,
		"$share/g/clients/a/x":               allowed,
		requestTopic:                         refused,
		"sensors/#":                          allowed,
	} {
		subscribe(ann, filter, want)
	}
	// Without a matching rule a client stays connected, but cannot use the store.
	plus := dial(t, s, "+")
	plus.Hello(as("ann"))
	subscribe(plus, "clients/+/response", refused)
	subscribe(plus, hexResponse("+"), allowed)
	eve := dial(t, s, "eve")
	eve.Hello(as("eve"))
	subscribe(eve, "clients/eve/response", refused)
	subscribe(eve, "sensors/#", allowed)
	eve.ask("GET x")
	eve.Expect("PUBACK 0x87")
	eve.Send(&packets.Publish{Topic: notifyPrefix + "61/command/notify/78", QoS: 1, PacketID: eve.PacketID(), Properties: &packets.Properties{}})
	eve.Expect("PUBACK 0x87")
	if st := s.State(); st.Requests != 0 {
		t.Errorf("state %+v", st)
	}
}
