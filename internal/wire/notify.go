package wire

import "strings"

// Op is the operation word of a notification (protocol.md 2.6).
type Op string

// The operations of notifications. DEL and EXPIRED, which the published protocol and an SDK
// mention, are parsed as OpDelete. Any other word is kept unchanged.
const (
	OpSet    Op = "SET"
	OpDelete Op = "DELETE"
)

// A Notification is the payload of a NOTIFY message. The key is in the topic (see
// [ParseNotifyTopic]); the version is the user property `__ts`.
type Notification struct {
	Op       Op
	Value    []byte
	HasValue bool // false if the message had no value; true for an empty value
}

// ParseNotification parses the payload of a NOTIFY message: the word NOTIFY and the operation, which may
// be followed by the word VALUE and the value. The error is a *[SyntaxError].
func ParseNotification(payload []byte) (Notification, error) {
	var room [4][]byte
	words, err := AppendWords(room[:0], payload)
	if err != nil {
		return Notification{}, err
	}
	if !isWord(words[0], "NOTIFY") {
		return Notification{}, failWord(payload, 0, "NOTIFY")
	}
	if len(words) != 2 && len(words) != 4 {
		p := parser{data: payload}
		return Notification{}, p.fail("NOTIFY, an operation and, optionally, VALUE with a value")
	}
	var n Notification
	switch {
	case isWord(words[1], "SET"):
		n.Op = OpSet
	case isWord(words[1], "DEL"), isWord(words[1], "DELETE"), isWord(words[1], "EXPIRED"):
		n.Op = OpDelete
	default:
		n.Op = Op(words[1])
	}
	if len(words) == 4 {
		if !isWord(words[2], "VALUE") {
			return Notification{}, failWord(payload, 2, "VALUE")
		}
		n.Value, n.HasValue = words[3], true
	}
	return n, nil
}

func isWord(word []byte, upper string) bool {
	return strings.EqualFold(string(word), upper)
}

// AppendNotification appends the payload of a NOTIFY message.
func AppendNotification(dst []byte, n Notification) []byte {
	if n.HasValue {
		return append(append(AppendNotificationHead(dst, n), n.Value...), '\r', '\n')
	}
	return AppendRequest(dst, "NOTIFY", string(n.Op))
}

// AppendNotificationHead appends the notification of a value, but neither the value nor the line end after it.
func AppendNotificationHead(dst []byte, n Notification) []byte {
	dst = appendHeader(dst, Array, 4)
	for _, word := range [...]string{"NOTIFY", string(n.Op), "VALUE"} {
		dst = AppendBlob(dst, word)
	}
	return AppendBlobHeader(dst, len(n.Value))
}
