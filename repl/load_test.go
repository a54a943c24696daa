package repl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sscli/sscli/format"
)

func TestParseEntry(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Entry
		err  string
	}{
		{in: `{"op":"get","key":"a","found":true,"value":"1","version":{"hlc":"1:0:n","list":[1,"}"]},"rtt_ms":0.2}`, want: Entry{"a", []byte("1"), true, "1:0:n"}},
		{in: ` { "key" : "a" , "value" : "" } `, want: Entry{"a", []byte{}, true, ""}},
		{in: `{"key_b64":"AP8=","value_b64":""}`, want: Entry{"\x00\xff", []byte{}, true, ""}},
		{in: `{"\u006bey":"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t","value":"é"}`, want: Entry{"é😀\"\\/\b\f\n\r\t", []byte("é"), true, ""}},
		{in: `{"key":"a","value":"1","version":{"hlc":1}}`, want: Entry{"a", []byte("1"), true, ""}},
		{in: `{"key":"a","found":false}`, want: Entry{"a", []byte{}, false, ""}},
		{in: `{"key":"a","value":"1","Value":"2","x":{"value":"3"},"y":["value",{"key":1}],"z":null}`, want: Entry{"a", []byte("1"), true, ""}},

		{in: "{\"key\":\"\xff\"}", err: "byte 9: JSON: invalid UTF-8; bytes that are not text go into a member with _b64"},
		{in: `{"key":`, err: "byte 8: JSON: unexpected EOF"},
		{in: `{"key":"a","value":"1"} x`, err: "byte 25: JSON: invalid character 'x' after top-level value"},
		{in: `{"key":'a'}`, err: "byte 8: JSON: invalid character '\\'' at start of value"},
		{in: `["a"]`, err: "expected a JSON object, got an array"},
		{in: `"a"`, err: "expected a JSON object, got a string"},
		{in: `1`, err: "expected a JSON object, got a number"},
		{in: `null`, err: "expected a JSON object, got null"},
		{in: `set a 1`, err: "byte 1: JSON: invalid character 's' at start of value"},
		{in: `true`, err: "expected a JSON object, got true or false"},
		{in: `{}`, err: "no key: expected key, or key_b64"},
		{in: `{"key":"a"}`, err: "no value: expected value, or value_b64"},
		{in: `{"key":"a","found":true}`, err: "no value: expected value, or value_b64"},
		{in: `{"key":"a","found":false,"value":""}`, err: "found is false, but there is a value"},
		{in: `{"key":"a","found":1,"value":""}`, err: "found is a number: must be true or false"},
		{in: `{"key":"a","value":21.5}`, err: "value is a number: expected a string"},
		{in: `{"key":"a","value":null}`, err: "value is null: expected a string"},
		{in: `{"key":{},"value":"1"}`, err: "key is an object: expected a string"},
		{in: `{"op":"set","key":"a","value":"1"}`, err: "op is \"set\": expected what get -o json prints"},
		{in: `{"op":1,"key":"a","value":"1"}`, err: "op is 1: expected what get -o json prints"},
		{in: `{"key":"a","key":"b","value":"1"}`, err: "key appears twice"},
		{in: `{"key":"a","key_b64":"YQ==","value":"1"}`, err: "key and key_b64: use only one of them"},
		{in: `{"key":"a","value_b64":"Y"}`, err: "value_b64 is not base64: illegal base64 data at input byte 0"},
		{in: `{"key":"a","value_b64":"YQ\n=="}`, err: "value_b64 is not base64: illegal character '\\n' at offset 2"},
		{in: `{"key":"a","value_b64":[]}`, err: "value_b64 is an array: expected a string"},
		{in: `{"key":"\ud83d","value":"1"}`, err: "byte 9: JSON: invalid surrogate pair `\\ud83d\",\"val` in string; bytes that are not text go into a member with _b64"},
		{in: `{"key":"a","value":"\ud83d\u0041"}`, err: "byte 21: JSON: invalid surrogate pair `\\ud83d\\u0041` in string; bytes that are not text go into a member with _b64"},
		{in: `{"key":"a","value":"\ude00\ud83d"}`, err: "byte 21: JSON: invalid surrogate pair `\\ude00\\ud83d` in string; bytes that are not text go into a member with _b64"},
		{in: `{"\ud83d":1}`, err: "byte 3: JSON: invalid surrogate pair `\\ud83d\":1}` in string; bytes that are not text go into a member with _b64"},
	} {
		got, err := ParseEntry(tt.in)
		if err != nil {
			if err.Error() != tt.err {
				t.Errorf("%s: %v, want %q", tt.in, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || tt.err != "" {
			t.Errorf("%s: want the error %q (-want +got):\n%s", tt.in, tt.err, diff)
		}
	}
}

// FuzzParseEntryRoundTrip checks that the JSON of `get` reads back as the same bytes.
func FuzzParseEntryRoundTrip(f *testing.F) {
	f.Add("setpoint", []byte("21.5"), true)
	f.Add("\x00\xff\u2028", []byte("\"\\\n\ud7ff\U0001f600"), true)
	f.Add("a", []byte(nil), false)
	f.Fuzz(func(t *testing.T, key string, value []byte, found bool) {
		if !found {
			value = nil
		}
		var out bytes.Buffer
		p, err := format.New(&out, format.Options{Output: "json"})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Print(format.Get{Key: key, Found: found, Value: value, RTT: 1, Many: true}); err != nil {
			t.Fatal(err)
		}
		line, err := NewReader(&out).NextText()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseEntry(line.Text)
		if err != nil || got.Key != key || !bytes.Equal(got.Value, value) || got.Found != found {
			t.Errorf("%q = %q, %v: %s is read as %+v, %v", key, value, found, line.Text, got, err)
		}
	})
}

// FuzzParseEntry checks that encoding/json agrees about everything that ParseEntry
// accepts.
func FuzzParseEntry(f *testing.F) {
	f.Add(`{"op":"get","key":"a","found":true,"value":"1","version":{"hlc":"1:0:n"},"rtt_ms":0.2}`)
	f.Add(` { "key_b64" : "AP8=" , "value" : "\ud83d\ude00\u0000" , "x" : [ { "key" : [ ] } , "]" ] } `)
	f.Fuzz(func(t *testing.T, in string) {
		got, err := ParseEntry(in)
		if err != nil {
			return
		}
		var want map[string]json.RawMessage // keeps names that differ in case apart
		if err := json.Unmarshal([]byte(in), &want); err != nil {
			t.Fatalf("%s is taken for %+v, encoding/json: %v", in, got, err)
		}
		read := func(name string) string {
			var text string
			if raw, ok := want[name]; ok && json.Unmarshal(raw, &text) == nil {
				return text
			}
			var data string
			if json.Unmarshal(want[name+"_b64"], &data) != nil {
				return ""
			}
			raw, err := base64.StdEncoding.DecodeString(data)
			if err != nil {
				t.Fatalf("%s: %v", in, err)
			}
			return string(raw)
		}
		if key, value := read("key"), read("value"); got.Key != key || string(got.Value) != value {
			t.Errorf("%s: got %+v, encoding/json has %q and %q", in, got, key, value)
		}
	})
}

func TestNextText(t *testing.T) {
	r := NewReader(strings.NewReader("\n \t\n'a\r\n\n{\"b\":1}"))
	for _, want := range []Line{{Number: 3, Text: "'a"}, {Number: 5, Text: `{"b":1}`}} {
		if line, err := r.NextText(); err != nil || !cmp.Equal(line, want) {
			t.Errorf("got %+v, %v; want %+v", line, err, want)
		}
	}
	if _, err := r.NextText(); err != io.EOF || r.Lines() != 5 {
		t.Errorf("the end: %v, after %d lines", err, r.Lines())
	}
	r = NewReader(strings.NewReader(strings.Repeat("x", 100)))
	r.maxText = 64
	if _, err := r.NextText(); err == nil || err.Error() != "line 1: "+ErrTooLong.Error() {
		t.Errorf("too long: %v", err)
	}
}

func BenchmarkParseEntry(b *testing.B) {
	const line = `{"op":"get","key":"setpoint","found":true,"value":"21.5","version":{"hlc":"1696374425000:1:StateStore","wall_ms":1696374425000,"counter":1,"node":"StateStore","time":"2023-10-03T23:07:05.000Z"},"rtt_ms":0.205}`
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEntry(line); err != nil {
			b.Fatal(err)
		}
	}
}
