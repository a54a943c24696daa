package edit

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestDocument: what the editor shows of a value, and what is stored for an edited text.
func TestDocument(t *testing.T) {
	for _, tt := range []struct{ stored, shown, edited, want, err string }{
		{"21.5", "21.5\n", "22\n", "22", ""},
		{"21.5", "21.5\n", "22", "22", ""},
		{"21.5", "21.5\n", "22\n\n", "22\n", ""},
		{"21.5", "21.5\n", "22\r\n", "22", ""},
		{"21.5", "21.5\n", "21.5\r\n", "21.5", ""},
		{"21.5\r", "21.5\r\n", "22\r\n", "22\r", ""},
		{"a\n", "a\n", "b\n", "b\n", ""},
		{"a\r\n", "a\r\n", "b\r\n", "b\r\n", ""},
		{"[\n1]", "[\n1]\n", "[\r\n2]\r\n", "[\r\n2]", ""},
		{"a\n", "a\n", "b", "b", ""},
		{"", "\n", "\n", "", ""},
		{`{"a":1.0,"b":"<"}`, "{\n  \"a\": 1.0,\n  \"b\": \"<\"\n}\n", "{\n  \"a\": 1.00,\n  \"b\": \"<\"\n}\n", `{"a":1.00,"b":"<"}`, ""},
		{`{"a": 1}`, "{\"a\": 1}\n", "{ \"a\": 2 }\n", `{ "a": 2 }`, ""},
		{`{"a":1}`, "{\n  \"a\": 1\n}\n", "{\n  \"a\": é\n}\n", "", "line 2, column 8: invalid character 'Ã' looking for beginning of value"},
		{`{"a":1}`, "{\n  \"a\": 1\n}\n", "{\n", "", "line 1, column 1: unexpected end of JSON input"},
		{`{"a":1}`, "{\n  \"a\": 1\n}\n", "{\"a\":\"\xff\"}\n", "", "it is not UTF-8"},
		{`{no JSON`, "{no JSON\n", "{neither\n", "{neither", ""},
	} {
		d, ok := newDocument([]byte(tt.stored))
		if !ok || string(d.text) != tt.shown {
			t.Errorf("%q is shown as %q, want %q", tt.stored, d.text, tt.shown)
		}
		got, err := d.value([]byte(tt.edited))
		if err != nil && err.Error() != tt.err || err == nil && (tt.err != "" || string(got) != tt.want) {
			t.Errorf("%q for %q: %q, %v; want %q, %s", tt.edited, tt.stored, got, err, tt.want, tt.err)
		}
	}
	for _, bytes := range []string{"\xff", "a\x00"} {
		if _, ok := newDocument([]byte(bytes)); ok {
			t.Errorf("%q is taken for text", bytes)
		}
	}
}

// FuzzDocument checks that an unedited text still stands for the original value, even if the editor drops the newline
// that edit added, and that what replaces JSON is JSON.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"a":[1.0,"\u2028<é"]}`), []byte(" [1, 2]\n"))
	f.Add([]byte("text\n\n"), []byte(""))
	f.Fuzz(func(t *testing.T, stored, edited []byte) {
		d, ok := newDocument(stored)
		if !ok {
			return
		}
		texts := [][]byte{d.text}
		if d.newline {
			texts = append(texts, bytes.TrimSuffix(d.text, []byte("\n")))
		}
		for _, text := range texts {
			if got, err := d.value(text); err != nil || !bytes.Equal(got, stored) {
				t.Errorf("%q is shown as %q, which is read as %q, %v", stored, text, got, err)
			}
		}
		if got, err := d.value(edited); err == nil && d.isJSON && !json.Valid(got) {
			t.Errorf("%q for %q is stored as %q", edited, stored, got)
		}
	})
}
