package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/wire"
)

func TestClientIDsThatCannotMakeTopicsAreRefused(t *testing.T) {
	tests := []struct{ id, want string }{
		{"", "bad client id: expected at least one character"},
		{"statestore", `the client id "statestore" belongs to the store`},
		{"a\x00b", `bad client id "a\x00b": expected UTF-8 without NUL`},
		{"a\xff", `bad client id "a\xff": expected UTF-8 without NUL`},
		{strings.Repeat("a", 32_727), "bad client id of 32727 bytes: must be at most 32726"},
	}
	for _, test := range tests {
		if err := wire.CheckClientID(test.id); err == nil || err.Error() != test.want {
			t.Errorf("%.40q: got %v, want %s", test.id, err, test.want)
		}
	}
	for _, id := range []string{"a", "STATESTORE", "statestore2", "a/b +#", "é", strings.Repeat("/", 32_726)} {
		if err := wire.CheckClientID(id); err != nil {
			t.Errorf("%.40q: %v", id, err)
		}
	}
}

func TestEveryTopicOfTheLongestClientIDIsAnMQTTString(t *testing.T) {
	for _, character := range []string{"a", "/"} {
		id := strings.Repeat(character, 32_726)
		if err := wire.CheckResponseTopic(wire.ResponseTopic(id)); err != nil {
			t.Error(err)
		}
		if n := len(wire.NotifyFilter(id)); n > 65_535 {
			t.Errorf("the filter has %d bytes", n)
		}
	}
}

func TestResponseTopicErrorsSayWhy(t *testing.T) {
	const store = "clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"
	tests := []struct {
		topic, want string
		forbidden   bool
	}{
		{wire.RequestTopic, `the broker forbids this response topic: "` + wire.RequestTopic + `"`, true},
		{store, `the broker forbids this response topic: "` + store + `"`, true},
		{store + "/+", `the broker forbids this response topic: "` + store + `/+"`, true},
		{"a/+/b", `bad response topic "a/+/b": expected a topic without the wildcards + and #`, false},
		{"#", `bad response topic "#": expected a topic without the wildcards + and #`, false},
		{"", "bad response topic: expected at least one character", false},
		{strings.Repeat("a", 65_536), "bad response topic of 65536 bytes: must be at most 65535", false},
		{"\xff", `bad response topic "\xff": expected UTF-8 without NUL`, false},
	}
	for _, test := range tests {
		err := wire.CheckResponseTopic(test.topic)
		if err == nil || err.Error() != test.want || errors.Is(err, wire.ErrForbiddenResponseTopic) != test.forbidden {
			t.Errorf("%.80q: got %v, want %s", test.topic, err, test.want)
		}
	}
	if err := wire.CheckResponseTopic(strings.Repeat("a", 65_535)); err != nil {
		t.Error(err)
	}
}

func TestTheStoresOwnTopicsAreForbiddenForReplies(t *testing.T) {
	for _, topic := range []string{wire.RequestTopic, wire.NotifyTopic("client", "key"), wire.NotifyFilter("client")} {
		if !wire.IsForbiddenResponseTopic(topic) {
			t.Errorf("%q is allowed", topic)
		}
	}
	for _, topic := range []string{"", wire.RequestTopic + "/response", strings.ToLower(wire.RequestTopic), "clients/statestore/v1/"} {
		if wire.IsForbiddenResponseTopic(topic) {
			t.Errorf("%q is forbidden", topic)
		}
	}
}

// FuzzTopic: notification topics survive a round trip for any client id and key, and every client id that
// passes the check has a response topic that passes it too.
func FuzzTopic(f *testing.F) {
	f.Add("client-id1", "SOMEKEY")
	f.Add("statestore", "")
	f.Add("a/b", "\x00\xff")
	f.Add("statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8", "/command/notify/")
	f.Fuzz(func(t *testing.T, id, key string) {
		topic := wire.NotifyTopic(id, key)
		gotID, gotKey, ok := wire.ParseNotifyTopic(topic)
		if !ok || gotID != id || gotKey != key {
			t.Fatalf("%q became %q, %q, %v", topic, gotID, gotKey, ok)
		}
		if _, lowKey, ok := wire.ParseNotifyTopic(topic[:len(topic)-2*len(key)] + strings.ToLower(topic[len(topic)-2*len(key):])); !ok || lowKey != key {
			t.Fatalf("%q in lower case became %q, %v", topic, lowKey, ok)
		}
		if !wire.IsForbiddenResponseTopic(topic) {
			t.Fatalf("%q is allowed as a response topic", topic)
		}
		levels := strings.Split(topic, "/")
		if filter := strings.Join(append(levels[:7:7], "+"), "/"); len(levels) != 8 || filter != wire.NotifyFilter(id) {
			t.Fatalf("%q is not matched by %q", topic, wire.NotifyFilter(id))
		}
		if wire.CheckClientID(id) == nil {
			if err := wire.CheckResponseTopic(wire.ResponseTopic(id)); err != nil {
				t.Fatal(err)
			}
		}
		if gotID, gotKey, ok := wire.ParseNotifyTopic(key); ok && !strings.EqualFold(wire.NotifyTopic(gotID, gotKey), key) {
			t.Fatalf("%q became %q, %q", key, gotID, gotKey)
		}
	})
}
