package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/wire"
)

func TestReplyNotesSayHowAnAnswerDeparted(t *testing.T) {
	tests := []struct{ payload, value, note string }{
		{"+OK\r\n", `+"OK"`, ""},
		{":-1\r\n", ":-1", ""},
		{"_\r\n", "null", ""},
		{"$2\r\n-1\r\n", `"-1"`, ""},
		{"-ERR: no\r\n", `-"ERR: no"`, ""},
		{"-2\r\n", `-"2"`, ""},
		{"-1\r\n", ":-1", "-1 without a colon"},
		{"-1", ":-1", "-1 without a colon"},
		{"-ERR no", `-"ERR no"`, "an error without CR LF"},
		{"$3\r\nabc", `"abc"`, "a blob without CR LF at its end"},
		{"$2\r\n\r\n", `"\r\n"`, "a blob without CR LF at its end"},
	}
	for _, test := range tests {
		r, err := wire.ParseReply([]byte(test.payload))
		if err != nil {
			t.Errorf("%q: %v", test.payload, err)
			continue
		}
		if show(r.Value) != test.value || r.Note != test.note {
			t.Errorf("%q: got %s and note %q, want %s and %q", test.payload, show(r.Value), r.Note, test.value, test.note)
		}
	}
}

func TestReplyToleranceEndsWithTheDocumentedForms(t *testing.T) {
	tests := []struct {
		payload, offset string
	}{
		{"$-1", "3"},
		{"$3", "2"},
		{"$3\r\nab", "0"},
		{"$3\r\nabc\r", "7"},
		{"$3\r\nabcd", "7"},
		{"$-2\r\n", "0"},
		{":1", "2"},
		{"_", "1"},
		{"*1\r\n$3\r\nabc", "11"},
		{"-1\r", "2"},
		{"-1\n", "2"},
		{"-1\r\n\r\n", "2"},
		{"-ERR no\r", "7"},
		{"-ERR no\r\n+OK\r\n", "7"},
		{"-", "1"},
		{"-\r\n", "1"},
		{"-E", "2"},
		{"-ER\r\n", "3"},
		{"-ERR", "4"},
		{"-ERR:  \r\n", "7"},
		{"1", "0"},
		{"ERR no\r\n", "0"},
	}
	for _, test := range tests {
		r, err := wire.ParseReply([]byte(test.payload))
		if bad := syntaxErrorAt(err, test.offset); bad != nil {
			t.Errorf("%q: %v", test.payload, bad)
		}
		if diff := cmp.Diff(wire.Reply{}, r); diff != "" {
			t.Errorf("%q: a reply beside an error (-want +got):\n%s", test.payload, diff)
		}
	}
}

func TestReadingABlobWithoutCRLFLeavesTheBytesBehindItAlone(t *testing.T) {
	buffer := []byte("$3\r\nabcZZZZ")
	if _, err := wire.ParseReply(buffer[:7]); err != nil {
		t.Fatal(err)
	}
	if err := same(string(buffer), "$3\r\nabcZZZZ"); err != nil {
		t.Error(err)
	}
}

func TestStoreErrorIsTheLineWithoutERR(t *testing.T) {
	tests := []struct{ line, text string }{
		{"ERR syntax error", "syntax error"},
		{"ERR: syntax error", "syntax error"},
		{"ERR:syntax error", "syntax error"},
		{"ERR  syntax error", "syntax error"},
		{"ERR", ""},
		{"ERR ", ""},
		{"ERR:", ""},
		{"ERR a: b", "a: b"},
		{"ERR ERR x", "ERR x"},
		{"ERR \xff", "\xff"},
		{"ERRx", "ERRx"},
		{"err x", "err x"},
		{" ERR x", " ERR x"},
		{"", ""},
	}
	for _, test := range tests {
		r := wire.Reply{Value: wire.Value{Kind: wire.SimpleError, Text: []byte(test.line)}}
		if diff := cmp.Diff(&wire.StoreError{Text: test.text}, r.StoreError()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.line, diff)
		}
	}
}

func TestOnlyErrorsAreStoreErrors(t *testing.T) {
	for _, payload := range []string{"+OK\r\n", ":-1\r\n", "-1\r\n", "$-1\r\n", "$5\r\n-ERR \r\n", "*1\r\n-ERR x\r\n"} {
		r, err := wire.ParseReply([]byte(payload))
		if err != nil {
			t.Fatalf("%q: %v", payload, err)
		}
		if e := r.StoreError(); e != nil {
			t.Errorf("%q: got %v, want none", payload, e)
		}
	}
}

// FuzzReply: every accepted reply is a single value that can be written as RESP3, and RESP3 itself is
// accepted without a note, except -1, which is also a RESP3 error.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		"+OK\r\n", ":-1\r\n", "-1", "-1\r\n", "$-1\r\n", "_\r\n", "-ERR syntax error", "-ERR: syntax error\r\n",
		"$4\r\n1234", "$4\r\n1234\r\n", "$0\r\n", "*1\r\n*1\r\n$4\r\nkey1\r\n", "-ERR a\r\n-ERR b\r\n", "$2\r\n\r\n", "-\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		strict, strictErr := wire.ParseValue(payload)
		r, err := wire.ParseReply(payload)
		if err != nil {
			if strictErr == nil && strings.Trim(string(payload), "-ER: \r\n") != "" { // an error must have a text
				t.Fatalf("%q is RESP3: %v", payload, err)
			}
			if err := syntaxErrorWithin(err, len(payload)); err != nil {
				t.Fatal(err)
			}
			return
		}
		again, err := wire.ParseValue(wire.AppendValue(nil, r.Value))
		if err != nil {
			t.Fatalf("%q gave what is no value: %v", payload, err)
		}
		if diff := cmp.Diff(r.Value, again, equateEmpty); diff != "" {
			t.Fatalf("%q changed (-first +again):\n%s", payload, diff)
		}
		isRESP3 := strictErr == nil && string(payload) != "-1\r\n"
		if isRESP3 != (r.Note == "") {
			t.Fatalf("%q: note %q, RESP3 %v", payload, r.Note, isRESP3)
		}
		if isRESP3 {
			if diff := cmp.Diff(strict, r.Value, equateEmpty); diff != "" {
				t.Fatalf("%q means two things (-value +reply):\n%s", payload, diff)
			}
		}
		if e := r.StoreError(); (e != nil) != (r.Value.Kind == wire.SimpleError) {
			t.Fatalf("%q: store error %v", payload, e)
		} else if e != nil && strings.ContainsAny(e.Text, "\r\n") {
			t.Fatalf("%q: store error of several lines %q", payload, e.Text)
		}
	})
}
