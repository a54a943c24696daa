package trace

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// FuzzTraceLine: whatever the broker sends, the trace is one line of printable characters.
func FuzzTraceLine(f *testing.F) {
	f.Add(wire.RequestTopic, []byte("*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), []byte("id"), "__ts", "1:0:a", "reply/topic", "")
	f.Add(wire.NotifyTopic("client", "k\x1b"), []byte("*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n"), []byte(nil), "", "", "", "")
	f.Add("a\nb", []byte("\x1b[2J"), []byte("\x1b"), "\x1b[2J", "\u202e", "\x07", "0x86 (\"\x1b[2J\")")
	f.Fuzz(func(t *testing.T, topic string, payload, correlation []byte, name, value, response, detail string) {
		line := Line(mqtt.Event{
			Type: "PUBLISH", ID: 7, Size: len(payload), Detail: detail, Duplicate: true,
			Message: &mqtt.Message{
				Topic: topic, Payload: payload, Correlation: correlation, ResponseTopic: response, Expiry: time.Second,
				User: []mqtt.Property{{Name: name, Value: value}},
			},
		}, time.Second)
		body, whole := strings.CutSuffix(line, "\n")
		if !whole || strings.ContainsFunc(body, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not one printable line: %q", line)
		}
	})
}
