package top

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseKeys(t *testing.T) {
	for in, want := range map[string][]key{
		"qé/":                {'q', 'é', '/'},
		"\x1b[A\x1bOB\x1b[C": {keyUp, keyDown, keyOther},
		"\x1b[5~\x1b[6~":     {keyPageUp, keyPageDown},
		"\x1b[H\x1b[4~\x1bOM": {
			keyHome, keyEnd, keyEnter,
		},
		"\x1b":                       {keyEscape},
		"\x1b\x1b":                   {keyEscape, keyEscape},
		"\x1bx":                      {keyEscape, 'x'},
		"\r\n\x7f\x08":               {keyEnter, keyEnter, keyBackspace, keyBackspace},
		"\x03\x1a\x15\x0c\x00\x01":   {keyInterrupt, keySuspend, keyClear, keyRedraw, keyOther, keyOther},
		"\x1b[1;5D\x1b[200~":         {keyOther, keyOther},
		"\xff\u202e":                 {keyOther, keyOther},
		"\x1b[11111111111111111111A": {keyOther, '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', 'A'},
	} {
		got, rest := parseKeys([]byte(in))
		if diff := cmp.Diff(want, got); diff != "" || len(rest) > 0 {
			t.Errorf("%q: rest %q (-want +got):\n%s", in, rest, diff)
		}
	}
	for in, want := range map[string]string{"a\xc3": "\xc3", "\x1b[": "\x1b[", "b\x1b[1;": "\x1b[1;"} {
		if _, rest := parseKeys([]byte(in)); string(rest) != want {
			t.Errorf("%q: rest %q, want %q", in, rest, want)
		}
	}
}

// Printable text is typed as it is; what is left for later is short; and it makes no
// difference in which pieces keys come, but for an escape, which ends a piece or begins a
// sequence.
func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("abc\x1b[A\xc3\xa9"), 3)
	f.Add([]byte("\x1b[1;5D\x1b\x1bOQ\xff\r"), 5)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		keys, rest := parseKeys(b)
		if len(rest) > mostSequence {
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
		first, left := parseKeys(b[:at])
		second, end := parseKeys(append(slices.Clone(left), b[at:]...))
		if pieces := append(first, second...); !slices.Equal(pieces, keys) || string(end) != string(rest) {
			t.Errorf("%q in two pieces: %v, %q; at once %v, %q", b, pieces, end, keys, rest)
		}
	})
}
