package store

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/wire"
)

// TestLongWords: the store neither copies nor reports a long word of a request that it refuses, because other clients
// wait meanwhile.
func TestLongWords(t *testing.T) {
	const size, most = 4 << 20, 1 << 20
	word, zeros := bytes.Repeat([]byte{0xff}, size), bytes.Repeat([]byte{'0'}, size)
	var event observe.Event
	s := New(Options{Variants: Variants{AnyCase: true}, Observe: func(e observe.Event) { event = e }})
	for _, words := range [][][]byte{
		{word}, {word, []byte("k")}, {[]byte("GET"), word}, {[]byte("SET"), []byte("k"), []byte("v"), word}, {[]byte("KEYNOTIFY"), []byte("k"), word},
		{[]byte("SET"), []byte("k"), []byte("v"), []byte("PX"), zeros},
		{[]byte("SCAN"), word}, {[]byte("SCAN"), []byte("*"), word}, {[]byte("SCAN"), []byte("*"), zeros},
		{[]byte("SCAN"), []byte("*"), append([]byte("1;1;>"), word...)}, {[]byte("SCAN"), []byte("*"), append([]byte("1;1;#"), word...)},
	} {
		request := &Request{ClientID: "c", Words: words, Timestamp: zeros, Fence: word}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.Do(request, nil)
		runtime.ReadMemStats(&after)
		reported := len(event.Verb) + len(event.Fence) + len(event.Clock)
		for _, key := range event.Keys {
			reported += len(key)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > most || reported > most {
			t.Errorf("%.10q: %d bytes allocated, %d reported", words, n, reported)
		}
	}
	if _, rest, ok := cutDigits(zeros); ok || len(rest) < size/2 {
		t.Errorf("%d of %d digits are read, %v", size-len(rest), size, ok)
	}
	s.Do(&Request{ClientID: "c", Payload: wire.AppendRequest(nil, "get", "k")}, nil)
	if event.Verb != "get" || event.Outcome != observe.No {
		t.Errorf("%+v", event)
	}
}
