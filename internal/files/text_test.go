package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"
)

// encodeText returns text as UTF-16 with a byte order mark.
func encodeText(order binary.AppendByteOrder, text string) []byte {
	b := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return b
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want, err string }{
		"nothing":                   {},
		"one byte":                  {text: "a", want: "a"},
		"UTF-8":                     {text: "sét a 1\r\n", want: "sét a 1\r\n"},
		"UTF-8 with a mark":         {text: "\xef\xbb\xbfset a 1\r\n", want: "set a 1\r\n"},
		"a mark alone":              {text: "\xef\xbb\xbf"},
		"two marks":                 {text: "\ufeff\ufeffa", want: "\ufeffa"},
		"a mark in the text":        {text: "a\ufeff", want: "a\ufeff"},
		"part of a mark":            {text: "\xef\xbb", want: "\xef\xbb"},
		"no mark":                   {text: "\xef\xbba", want: "\xef\xbba"},
		"UTF-16, little endian":     {text: "\xff\xfea\x00\xe9\x00\r\x00\n\x00", want: "aé\r\n"},
		"UTF-16, big endian":        {text: "\xfe\xff\x00a\x00\xe9", want: "aé"},
		"a surrogate pair":          {text: "\xff\xfe\x3d\xd8\x00\xde", want: "😀"},
		"the mark of UTF-16 alone":  {text: "\xff\xfe"},
		"one byte of it":            {text: "\xff", want: "\xff"},
		"an odd number of bytes":    {text: "\xff\xfea\x00b", want: "a", err: "not UTF-16: half of a character at byte 4"},
		"a high surrogate at end":   {text: "\xff\xfea\x00\x3d\xd8", want: "a", err: "not UTF-16: half of a surrogate pair at byte 4"},
		"a low surrogate":           {text: "\xff\xfe\x00\xdea\x00", err: "not UTF-16: half of a surrogate pair at byte 2"},
		"a high surrogate and an a": {text: "\xff\xfe\x3d\xd8a\x00", err: "not UTF-16: half of a surrogate pair at byte 2"},
		"U+FFFD":                    {text: "\xff\xfe\xfd\xff", want: "\ufffd"},
	} {
		for _, source := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
			got, err := io.ReadAll(NewTextReader(source))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if string(got) != tt.want || text != tt.err {
				t.Errorf("%s: %q, error %q, want %q, error %q", name, got, text, tt.want, tt.err)
			}
		}
	}
}

// TestPrompt reads each line of a pipe before the next is written.
func TestPrompt(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{
		{"a\n", "b\n"}, {"\xef\xbb\xbfa\n", "b\n"}, {"\xff\xfea\x00\n\x00", "b\x00\n\x00"}, {"\xfe\xff\x00a\x00\n", "\x00b\x00\n"},
	} {
		in, out := io.Pipe()
		text := NewTextReader(in)
		for i, want := range []string{"a\n", "b\n"} {
			go out.Write([]byte(lines[i]))
			got := make([]byte, 2)
			if _, err := io.ReadFull(text, got); err != nil || string(got) != want {
				t.Errorf("%q: %q, %v, want %q", lines, got, err, want)
			}
		}
		out.Close()
	}
}

// TestReadError: the source's error is returned wherever it occurs.
func TestReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, text := range []string{"", "a", "\xef", "\xef\xbb\xbf", "\xff\xfe", "\xff\xfea"} {
		if got, err := io.ReadAll(NewTextReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)))); err != broken {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// FuzzDecode: text in each encoding is decoded, and text without a byte order mark stays unchanged.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"", "set a 1\r\n", "\xff\xfea\x00", "\ufeff😀", "\xff\xfe\x3d\xd8", "\xed\xa0\x80"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := DecodeText(text)
		marked := bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff"))
		switch {
		case marked && (len(text)%2 == 1) && err == nil:
			t.Errorf("%q: half a character was accepted", text)
		case marked && err == nil && !utf8.Valid(got):
			t.Errorf("%q: %q is not UTF-8", text, got)
		case !marked && (err != nil || !bytes.Equal(got, bytes.TrimPrefix(text, []byte("\ufeff")))):
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if !utf8.Valid(text) {
			return
		}
		for _, written := range [][]byte{
			append([]byte("\ufeff"), text...), encodeText(binary.LittleEndian, string(text)), encodeText(binary.BigEndian, string(text)),
		} {
			if again, err := DecodeText(written); err != nil || !bytes.Equal(again, text) {
				t.Errorf("%q: %q, %v, want %q", written, again, err, text)
			}
		}
	})
}
