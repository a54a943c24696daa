package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/wire"
)

func TestNotificationsOfEveryFormAreRead(t *testing.T) {
	abc := []byte("abc")
	tests := []struct {
		words string
		want  wire.Notification
	}{
		{"NOTIFY SET VALUE abc", wire.Notification{Op: wire.OpSet, Value: abc, HasValue: true}},
		{"NOTIFY SET", wire.Notification{Op: wire.OpSet}},
		{"NOTIFY SET VALUE ", wire.Notification{Op: wire.OpSet, Value: []byte{}, HasValue: true}},
		{"notify Set vAlue abc", wire.Notification{Op: wire.OpSet, Value: abc, HasValue: true}},
		{"NOTIFY DELETE", wire.Notification{Op: wire.OpDelete}},
		{"NOTIFY DEL", wire.Notification{Op: wire.OpDelete}},
		{"NOTIFY EXPIRED", wire.Notification{Op: wire.OpDelete}},
		{"NOTIFY del", wire.Notification{Op: wire.OpDelete}},
		{"NOTIFY expired", wire.Notification{Op: wire.OpDelete}},
		{"NOTIFY DELETE VALUE abc", wire.Notification{Op: wire.OpDelete, Value: abc, HasValue: true}},
		{"NOTIFY Renamed", wire.Notification{Op: "Renamed"}},
		{"NOTIFY \x00\xff", wire.Notification{Op: "\x00\xff"}},
		{"NOTIFY ", wire.Notification{}},
	}
	for _, test := range tests {
		got, err := wire.ParseNotification(wire.AppendRequest(nil, strings.Split(test.words, " ")...))
		if err != nil {
			t.Errorf("%q: %v", test.words, err)
		} else if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.words, diff)
		}
	}
}

func TestOtherPayloadsAreNoNotifications(t *testing.T) {
	const counts = "NOTIFY, an operation and, optionally, VALUE with a value"
	tests := []struct {
		payload, want string
		offset        int
	}{
		{"+OK\r\n", "an array of at least one blob", 0},
		{"*1\r\n$6\r\nNOTIFY\r\n", counts, 0},
		{"*3\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$1\r\na\r\n", counts, 0},
		{"*5\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$1\r\na\r\n$1\r\nb\r\n", counts, 0},
		{"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "NOTIFY", 4},
		{"*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$3\r\nVAL\r\n$1\r\na\r\n", "VALUE", 25},
		{"*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$-1\r\n", "only blobs in the array", 36},
	}
	for _, test := range tests {
		n, err := wire.ParseNotification([]byte(test.payload))
		e, ok := err.(*wire.SyntaxError)
		if !ok || e.Want != test.want || e.Offset != test.offset {
			t.Errorf("%q: got %v, want %q at byte %d", test.payload, err, test.want, test.offset)
		}
		if diff := cmp.Diff(wire.Notification{}, n); diff != "" {
			t.Errorf("%q: a notification beside an error (-want +got):\n%s", test.payload, diff)
		}
	}
}

func TestNotificationErrorsStayShortForManyWords(t *testing.T) {
	_, err := wire.ParseNotification(wire.AppendRequest(nil, make([]string, 100_000)...))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("got %.300v, want a short error", err)
	}
	payload := wire.AppendRequest(nil, append([]string{"NOTIFY"}, make([]string, 100_000)...)...)
	if _, err := wire.ParseNotification(payload); err == nil || len(err.Error()) > 200 {
		t.Errorf("got %.300v, want a short error", err)
	}
}

// FuzzNotification: a parsed notification survives a round trip through the encoder, and so does every
// operation word of the protocol with any value.
func FuzzNotification(f *testing.F) {
	for _, s := range []string{
		"*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$3\r\nabc\r\n",
		"*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n",
		"*2\r\n$6\r\nnotify\r\n$7\r\nexpired\r\n",
		"*2\r\n$6\r\nNOTIFY\r\n$3\r\nFOO\r\n",
		"*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$0\r\n\r\n",
	} {
		f.Add([]byte(s), s)
	}
	f.Fuzz(func(t *testing.T, payload []byte, word string) {
		list := []wire.Notification{
			{Op: wire.OpSet, Value: payload, HasValue: true},
			{Op: wire.OpSet},
			{Op: wire.OpDelete},
		}
		if n, err := wire.ParseNotification(payload); err == nil {
			list = append(list, n)
		} else if err := syntaxErrorWithin(err, len(payload)); err != nil {
			t.Fatal(err)
		}
		if n, err := wire.ParseNotification(wire.AppendRequest(nil, "NOTIFY", word)); err != nil {
			t.Fatalf("operation %q: %v", word, err)
		} else {
			list = append(list, n)
		}
		for _, want := range list {
			got, err := wire.ParseNotification(wire.AppendNotification(nil, want))
			if err != nil {
				t.Fatalf("%+v: %v", want, err)
			}
			if diff := cmp.Diff(want, got, equateEmpty); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}
