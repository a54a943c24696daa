package emulator_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

func upperHex(id string) string { return strings.ToUpper(hex.EncodeToString([]byte(id))) }

// hexResponse returns the response topic with the id in hexadecimal.
func hexResponse(id string) string {
	return "clients/" + upperHex(id) + "/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response"
}

// topicsOf returns topics of a client: for replies, in all forms that SDKs use, and for notifications.
func topicsOf(id string) []string {
	topics := []string{hexResponse(id), notifyPrefix + upperHex(id) + "/command/notify/6B"}
	if strings.ContainsAny(id, "/+#") || id == "statestore" {
		return topics // other forms would be topics of several clients, or no valid topics
	}
	const store = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"
	for _, rest := range []string{"services/statestore/_any_/command/invoke/response", "services/" + store + "/response", store, "own"} {
		topics = append(topics, "clients/"+id+"/"+rest)
	}
	return topics
}

// FuzzTopicOwners: a client owns its topics, and no filter that it owns matches a topic of another client,
// whatever the ids.
func FuzzTopicOwners(f *testing.F) {
	f.Add("4142", "AB", "clients/4142/#")
	f.Add("AB", "4142", "clients/4142/#")
	f.Add("AB", "4142", "clients/4142/services/+/_any_/command/invoke/response")
	f.Add("4142", "AB", "clients/4142/+/v1/#")
	f.Add("4142", "AB", "clients/4142/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke/response/#")
	f.Add("statestore", "a", "clients/statestore/#")
	f.Add("a", "a/b", "clients/a/#")
	f.Add("+", "a", "clients/+/#")
	f.Add("a", "b", "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/61/#")
	f.Fuzz(func(t *testing.T, id, other, filter string) {
		for _, name := range []string{id, other} {
			if name == "" || strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
				return
			}
		}
		for _, topic := range topicsOf(id) {
			if !emulator.OwnsTopic(id, topic) {
				t.Errorf("%q does not own %s", id, topic)
			}
		}
		victims := []string{other, upperHex(id), upperHex(other)}
		if text, err := hex.DecodeString(id); err == nil && len(text) > 0 && utf8.Valid(text) {
			victims = append(victims, string(text))
		}
		filters := append(topicsOf(other), filter, "clients/"+id+"/#", "clients/"+id+"/+/#", "clients/"+upperHex(id)+"/#", hexResponse(id)+"/#")
		for _, victim := range victims {
			for _, filter := range filters {
				for _, topic := range topicsOf(victim) {
					if victim != id && judgeMatch(filter, topic) && emulator.OwnsTopic(id, filter) {
						t.Errorf("%q owns %s, which matches %s of %q", id, filter, topic, victim)
					}
				}
			}
		}
	})
}

// judgeMatch reports whether a filter matches a topic. It compares them level by level.
func judgeMatch(filter, topic string) bool {
	levels := strings.Split(topic, "/")
	for i, f := range strings.Split(filter, "/") {
		switch {
		case f == "#":
			return i <= len(levels)
		case i >= len(levels) || f != "+" && f != levels[i]:
			return false
		}
	}
	return strings.Count(filter, "/") == strings.Count(topic, "/")
}

// TestForgedReply: a client whose id is another client's id in hexadecimal neither gets the other's replies
// nor can send it a forged one.
func TestForgedReply(t *testing.T) {
	s := emulator.Start(t, trusting(parseRules(t, "ann:ReadWrite:*", "eve:ReadWrite:eve/*")))
	ann := connect(t, s, "4142", as("ann"))
	eve := connect(t, s, "AB", as("eve"))
	for _, filter := range []string{wire.ResponseTopic("4142"), "clients/4142/#", "$share/g/clients/4142/#", "clients/4142/+/statestore/_any_/command/invoke/response"} {
		eve.Send(&packets.Subscribe{PacketID: eve.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: filter, QoS: 1}}})
		if got := eve.Describe(eve.Receive()); got != "SUBACK 135" {
			t.Errorf("eve subscribes to %s: %s", filter, got)
		}
	}
	forged := eve.publication("GET", "eve/1")
	forged.Properties.ResponseTopic = wire.ResponseTopic("4142")
	eve.Send(forged)
	eve.Expect("PUBACK 0x87")
	ann.do("SET k v", "+OK")
	eve.do("GET eve/1", "$-1")
	own := dial(t, s, "statestore")
	own.Hello(as("ann"))
	own.Send(&packets.Subscribe{PacketID: own.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: "clients/statestore/#", QoS: 1}}})
	if got := own.Describe(own.Receive()); got != "SUBACK 135" {
		t.Errorf("statestore subscribes to clients/statestore/#: %s", got)
	}
}
