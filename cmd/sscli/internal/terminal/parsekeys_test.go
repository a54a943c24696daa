package terminal

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseKeys(t *testing.T) {
	for in, want := range map[string][]Key{
		"qé/":                {'q', 'é', '/'},
		"\x1b[A\x1bOB\x1b[C": {KeyUp, KeyDown, KeyOther},
		"\x1b[5~\x1b[6~":     {KeyPageUp, KeyPageDown},
		"\x1b[H\x1b[4~\x1bOM": {
			KeyHome, KeyEnd, KeyEnter,
		},
		"\x1b":                       {KeyEscape},
		"\x1b\x1b":                   {KeyEscape, KeyEscape},
		"\x1bx":                      {KeyEscape, 'x'},
		"\r\n\x7f\x08":               {KeyEnter, KeyEnter, KeyBackspace, KeyBackspace},
		"\x03\x1a\x15\x0c\x00\x01":   {KeyInterrupt, KeySuspend, KeyClear, KeyRedraw, KeyOther, KeyOther},
		"\x1b[1;5D\x1b[200~":         {KeyOther, KeyOther},
		"\xff\u202e":                 {KeyOther, KeyOther},
		"\x1b[11111111111111111111A": {KeyOther, '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', 'A'},
	} {
		got, rest := ParseKeys([]byte(in))
		if diff := cmp.Diff(want, got); diff != "" || len(rest) > 0 {
			t.Errorf("%q: rest %q (-want +got):\n%s", in, rest, diff)
		}
	}
	for in, want := range map[string]string{"a\xc3": "\xc3", "\x1b[": "\x1b[", "b\x1b[1;": "\x1b[1;"} {
		if _, rest := ParseKeys([]byte(in)); string(rest) != want {
			t.Errorf("%q: rest %q, want %q", in, rest, want)
		}
	}
}

// FuzzParseKeys: printable text is returned unchanged, and the rest is short. The keys do not depend on how the bytes
// are split, except after an escape, which is a key only at the end of a read.
func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("abc\x1b[A\xc3\xa9"), 3)
	f.Add([]byte("\x1b[1;5D\x1b\x1bOQ\xff\r"), 5)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		keys, rest := ParseKeys(b)
		if len(rest) > maxSequence {
			t.Errorf("%d bytes are left: %q", len(rest), rest)
		}
		text := string(b)
		printable := !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
		if utf8.ValidString(text) && printable {
			var typed []rune
			for _, k := range keys {
				typed = append(typed, rune(k))
			}
			if string(typed) != text {
				t.Errorf("%q was typed as %q", text, string(typed))
			}
		}
		if strings.ContainsRune(text, escape) || at < 0 || at > len(b) {
			return
		}
		first, left := ParseKeys(b[:at])
		second, end := ParseKeys(append(slices.Clone(left), b[at:]...))
		if pieces := append(first, second...); !slices.Equal(pieces, keys) || string(end) != string(rest) {
			t.Errorf("%q in two pieces: %v, %q; at once %v, %q", b, pieces, end, keys, rest)
		}
	})
}
