package wire

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	storeID = "FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"

	// RequestTopic is the topic of every request (protocol.md 1.1).
	RequestTopic = "statestore/v1/" + storeID + "/command/invoke"

	notifyPrefix = "clients/statestore/v1/" + storeID

	// NotifyTopics is the beginning of all notification topics. The client id in hexadecimal follows.
	NotifyTopics = notifyPrefix + "/"

	notifySuffix = "/command/notify/"
)

// maxString is the length in bytes of the longest MQTT string.
const maxString = 65535

// maxClientID is the length in bytes of the longest client id whose response topic, with the id
// in hexadecimal, still fits in an MQTT string.
const maxClientID = (maxString - len("clients//statestore/v1/"+storeID+"/command/invoke/response")) / 2

// ErrForbiddenResponseTopic means that the broker disconnects a client that uses this
// response topic (protocol.md 1.1).
var ErrForbiddenResponseTopic = errors.New("the broker forbids this response topic")

// ResponseTopic returns the topic for the replies to a client. If the client id can be a topic
// level, the topic has the form that the published protocol recommends; otherwise it contains
// the id in hexadecimal.
func ResponseTopic(clientID string) string {
	if isTopicLabel(clientID) {
		return PlainResponseTopic(clientID)
	}
	return HexResponseTopic(clientID)
}

// PlainResponseTopic returns the topic for the replies to a client that contains the id, or a token for it, unchanged.
func PlainResponseTopic(level string) string {
	return "clients/" + level + "/services/statestore/_any_/command/invoke/response"
}

// HexResponseTopic returns the topic for the replies to a client that contains the id in hexadecimal.
func HexResponseTopic(clientID string) string {
	return "clients/" + HexID(clientID) + "/statestore/v1/" + storeID + "/command/invoke/response"
}

// isTopicLabel reports whether s can be a topic level, by the SDKs' rule: printable ASCII without
// spaces, quotes, and the characters that are special in topics and topic patterns.
func isTopicLabel(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte(`"+#{}/`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// CheckResponseTopic returns why a topic cannot be a response topic, or nil. The error
// wraps ErrForbiddenResponseTopic if the broker would disconnect the client.
func CheckResponseTopic(topic string) error {
	if IsForbiddenResponseTopic(topic) {
		return fmt.Errorf("%w: %q", ErrForbiddenResponseTopic, topic)
	}
	if strings.ContainsAny(topic, "+#") {
		return fmt.Errorf("bad response topic %q: expected a topic without the wildcards + and #", topic)
	}
	return checkString("response topic", topic)
}

// IsForbiddenResponseTopic reports whether the broker disconnects a client that uses this
// response topic.
func IsForbiddenResponseTopic[T string | []byte](topic T) bool {
	return string(topic) == RequestTopic || len(topic) >= len(notifyPrefix) && string(topic[:len(notifyPrefix)]) == notifyPrefix
}

// CheckClientID returns why a client id cannot be used with the store, or nil. It rejects the id
// `statestore`, which would mix the client's topics with the store's topics.
func CheckClientID(id string) error {
	if id == "statestore" {
		return errors.New(`the client id "statestore" belongs to the store`)
	}
	if len(id) > maxClientID {
		return fmt.Errorf("bad client id of %d bytes: must be at most %d", len(id), maxClientID)
	}
	return checkString("client id", id)
}

// CheckUsername returns why a user name cannot be sent in CONNECT, or nil. An empty one is not sent.
func CheckUsername(name string) error {
	if name == "" {
		return nil
	}
	return checkString("user name", name)
}

// CheckMetricCategory returns why category cannot be the value of PropMetricCategory, or nil.
func CheckMetricCategory(category string) error { return checkString("metric category", category) }

// CheckFence returns why the text of a fencing token cannot be sent, or nil. The store checks the rest.
func CheckFence(text string) error { return checkString("fencing token", text) }

func checkString(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("bad %s: expected at least one character", what)
	case len(s) > maxString:
		return fmt.Errorf("bad %s of %d bytes: must be at most %d", what, len(s), maxString)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return fmt.Errorf("bad %s %.80q: expected UTF-8 without NUL", what, s)
	}
	return nil
}

// NotifyTopic returns the topic on which a client is notified about a key.
func NotifyTopic(clientID, key string) string {
	return notifyPrefix + "/" + HexID(clientID) + notifySuffix + HexID(key)
}

// NotifyFilter returns the topic filter that matches all of a client's notifications.
func NotifyFilter(clientID string) string {
	return notifyPrefix + "/" + HexID(clientID) + notifySuffix + "+"
}

// MaxNotifyKey returns the length in bytes of the longest key for which a client can be
// notified. The notification topic holds the key in hexadecimal, and an MQTT topic has at most
// 65535 bytes.
func MaxNotifyKey(clientID string) int {
	return (maxString - len(NotifyTopic(clientID, ""))) / 2
}

// ParseNotifyTopic returns the client id and the key in a notification topic. The hexadecimal
// digits may be in upper or lower case. ok is false if topic is not a notification topic.
func ParseNotifyTopic(topic string) (clientID, key string, ok bool) {
	rest, ok := strings.CutPrefix(topic, notifyPrefix+"/")
	if !ok {
		return "", "", false
	}
	id, hexKey, ok := strings.Cut(rest, notifySuffix)
	if !ok {
		return "", "", false
	}
	idBytes, err := hex.DecodeString(id)
	keyBytes, err2 := hex.DecodeString(hexKey)
	if err != nil || err2 != nil {
		return "", "", false
	}
	return string(idBytes), string(keyBytes), true
}

// HexID returns a client id, or a key, as topics contain it in hexadecimal.
func HexID(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }
