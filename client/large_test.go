package client_test

import (
	"bytes"
	"testing"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
)

// A value that is encoded in place, and whose memory is not copied, is the same as any other: also in
// the trace, and after later replies have come.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{})
	traced := 0
	session, err := client.Dial(t.Context(), client.Options{Address: s.Addr().String(), Trace: func(e mqtt.Event) {
		if e.Sent && e.Message != nil {
			traced += len(e.Message.Payload)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	values := make([][]byte, 4)
	total := 0
	for i := range values {
		values[i] = bytes.Repeat([]byte{byte('a' + i), '\n', 0}, (1<<20)/3-100+100*i) // below and above the limit
		total += len(values[i])
		if r, err := session.Set(t.Context(), string(rune('a'+i)), values[i], client.SetOptions{}); err != nil || !r.Applied {
			t.Fatal(r, err)
		}
	}
	if traced < total {
		t.Errorf("the trace has %d bytes of payloads, the values have %d", traced, total)
	}
	var read [][]byte
	for i := range values {
		r, err := session.Get(t.Context(), string(rune('a'+i)))
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, r.Value)
	}
	for i := range values {
		if !bytes.Equal(values[i], read[i]) {
			t.Errorf("value %d was changed", i)
		}
	}
	if session.MaxPacketSize() < 1<<20 {
		t.Error(session.MaxPacketSize())
	}
}
