package wire_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sscli/sscli/internal/wire"
)

// equateEmpty treats nil and empty slices as equal.
var equateEmpty = cmpopts.EquateEmpty()

func TestRequestsAreArraysOfBlobsOnly(t *testing.T) {
	tests := []struct {
		payload   string
		offset    int
		want, got string
	}{
		{"", 0, "a RESP3 value", "the end of the message"},
		{"$3\r\nGET\r\n", 0, "an array of at least one blob", `"$3\r\nGET\r\n"`},
		{"*0\r\n", 0, "an array of at least one blob", `"*0\r\n"`},
		{"$-1\r\n", 0, "an array of at least one blob", `"$-1\r\n"`},
		{"*1\r\n+GET\r\n", 4, "only blobs in the array", `"+GET\r\n"`},
		{"*2\r\n$3\r\nGET\r\n$-1\r\n", 13, "only blobs in the array", `"$-1\r\n"`},
		{"*2\r\n$003\r\nGET\r\n*0\r\n", 15, "only blobs in the array", `"*0\r\n"`},
		{"*2\r\n$3\r\nGET\r\n$1\r\na\r\n\r\n", 20, "the end of the message", `"\r\n"`},
		{"*1\r\n$-0\r\n\r\n", 5, "a blob length", `"-0\r\n\r\n"`},
		{"GET key\r\n", 0, "one of + - : $ * _", `"GET key\r\n"`},
	}
	for _, test := range tests {
		words, err := wire.ParseRequest([]byte(test.payload))
		want := &wire.SyntaxError{Offset: test.offset, Want: test.want, Got: test.got}
		if diff := cmp.Diff(error(want), err); diff != "" || words != nil {
			t.Errorf("%q: got %q and an error (-want +got):\n%s", test.payload, words, diff)
		}
	}
}

func TestRequestWordsAliasThePayload(t *testing.T) {
	payload := wire.AppendRequest(nil, "GET", "key")
	words, err := wire.ParseRequest(payload)
	if err != nil {
		t.Fatal(err)
	}
	copy(words[1], "KEY")
	if err := same(string(payload), "*2\r\n$3\r\nGET\r\n$3\r\nKEY\r\n"); err != nil {
		t.Error(err)
	}
}

func TestRequestsOfStringsAndOfBytesAreTheSame(t *testing.T) {
	fromStrings := wire.AppendRequest(nil, "SET", "k", "\x00\r\n\xff")
	fromBytes := wire.AppendRequest(nil, []byte("SET"), []byte("k"), []byte("\x00\r\n\xff"))
	if err := same(string(fromBytes), string(fromStrings)); err != nil {
		t.Error(err)
	}
}

func TestLargeKeysAndValuesTravel(t *testing.T) {
	key, value := strings.Repeat("k", 6_500), strings.Repeat("v", 1<<20)
	words, err := wire.ParseRequest(wire.AppendRequest(nil, "SET", key, value))
	if err != nil {
		t.Fatal(err)
	}
	if len(words) != 3 || string(words[1]) != key || string(words[2]) != value {
		t.Error("the words changed on the way")
	}
}

// words divides bytes into words: a length of one byte or, if that is 255, of three, then that many bytes, or
// as many as remain.
func words(data []byte) [][]byte {
	var w [][]byte
	for len(data) > 0 {
		n := int(data[0])
		data = data[1:]
		if n == 255 && len(data) >= 2 {
			n = int(binary.LittleEndian.Uint16(data))
			data = data[2:]
		}
		n = min(n, len(data))
		w = append(w, data[:n])
		data = data[n:]
	}
	return w
}

// FuzzRequest: every non-empty list of words survives a round trip, and a word that was left out fits in.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("\x03GET\x07SETKEY2"))
	f.Add([]byte("\x03SET\x01k\x00"))
	f.Add([]byte("\x03SET\x01k\x06\r\n$1\r\n"))
	f.Add([]byte{0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		want := words(data)
		got, err := wire.ParseRequest(wire.AppendRequest(nil, want...))
		if len(want) == 0 {
			if err == nil {
				t.Fatal("want an error for no words")
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", want, err)
		}
		if diff := cmp.Diff(want, got, equateEmpty); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		texts := make([]string, len(want))
		for i, w := range want {
			texts[i] = string(w)
		}
		i := len(data) % len(want)
		around, at := wire.AppendRequestAround([]byte("x"), texts, i)
		whole := string(around[:at]) + texts[i] + string(around[at:])
		if err := same(whole, "x"+string(wire.AppendRequest(nil, texts...))); err != nil {
			t.Fatalf("around word %d of %q: %v", i, texts, err)
		}
		if _, err := wire.ParseRequest(data); err != nil {
			if err := syntaxErrorWithin(err, len(data)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAppendWords: AppendWords keeps the contents of the slice, and does not allocate if it has room.
func TestAppendWords(t *testing.T) {
	payload := wire.AppendRequest(nil, "SET", "key", "value")
	words, err := wire.AppendWords([][]byte{[]byte("before")}, payload)
	want := [][]byte{[]byte("before"), []byte("SET"), []byte("key"), []byte("value")}
	if diff := cmp.Diff(want, words); diff != "" || err != nil {
		t.Errorf("error %v, words (-want +got):\n%s", err, diff)
	}
	if n := testing.AllocsPerRun(100, func() { words, err = wire.AppendWords(words[:0], payload) }); n != 0 || err != nil {
		t.Errorf("%v allocations, error %v", n, err)
	}
}
