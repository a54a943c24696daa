package repl

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestKeys(t *testing.T) {
	for _, tt := range []struct{ sent, want string }{
		{"get a\r", "get a\r"},
		{"é日😀", "é日😀"},
		{"\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F\x1bOA\x1bOF", "\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F\x1bOA\x1bOF"},
		{"\x1b[1~\x1b[4~\x1b[7~\x1b[8~\x1b[2~\x1b[5~", "\x01\x05\x01\x05"},
		{"\x1b[3~", string(keyDelete)},
		{"\x1b[1;5C\x1b[1;5D\x1b[1;3D\x1b[1;2D\x1b[3;5~", "\x1bf\x1bb\x1bb\x1b[D\x1bd"},
		{"\x1bb\x1bf\x1bd\x1b\x7f\x1b\x08\x1bx", "\x1bb\x1bf\x1bd\x1b\x7f\x1b\x7f"},
		{"\x1b\r", string(rune(byteBase + '\n'))},
		{"\x1b[[Aa\x1b[15~b\x1b[<0;1;1Mc", "abc"},
		{"\x1b\x1b[A", "\x1b[A"},
		{"\x1b[1;\x03a", "\x03a"}, // an incomplete sequence
		{"\x1bO\x03\x1bOPa\x1bO\x1b[200~x\x1b[201~", "\x03a" + string(keyPaste)},
		{"a\x00b", "ab"}, // Ctrl-Space
		{"\xff\xc3(\xe2\x82", string([]rune{byteBase + 0xff, byteBase + 0xc3, '('})},
		{"\ufdd0", string([]rune{byteBase + 0xef, byteBase + 0xb7, byteBase + 0x90})},
		{"\x1b[200~a\r\n\x1b[Ab\x1b[201~c", string(keyPaste) + "c"},
	} {
		for _, in := range []io.Reader{strings.NewReader(tt.sent), iotest.OneByteReader(strings.NewReader(tt.sent))} {
			got, err := io.ReadAll(newKeys(in))
			if err != nil || string(got) != tt.want {
				t.Errorf("%q: got %q, %v, want %q", tt.sent, got, err, tt.want)
			}
		}
	}
}

func TestKeysPaste(t *testing.T) {
	k := newKeys(strings.NewReader("\x1b[200~a\r\n\rb\x1b[201\x1b[201~\x1b[200~c\x00\x1b[201~"))
	if got, err := io.ReadAll(k); err != nil || string(got) != string([]rune{keyPaste, keyPaste}) {
		t.Fatalf("%q, %v", got, err)
	}
	for _, want := range []string{"a\n\nb\x1b[201", "c\x00", ""} {
		if got := k.paste(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// FuzzEdited checks that every text survives editing: it decodes to itself, and the text that readline edits
// is valid UTF-8 without control characters.
func FuzzEdited(f *testing.F) {
	f.Add("set a\t'\x00\xff\ufdd0\U0010ff41\U0010ffff\n\u202e日'")
	f.Fuzz(func(t *testing.T, text string) {
		line := edited(text)
		if got := textOf(line); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
		for _, r := range line {
			if r < ' ' || r == 0x7f || isKey(r) || !utf8.ValidRune(r) {
				t.Errorf("%q has %U", text, r)
			}
		}
	})
}

// FuzzKeys checks that text passes unchanged, whatever the terminal sent before, and however reads divide it.
func FuzzKeys(f *testing.F) {
	f.Add("\x1b[1;5C", "abc")
	f.Add("\x1b[200~x", "é")
	f.Add("\xe2\x82", "x")
	f.Fuzz(func(t *testing.T, before, typed string) {
		const end = "\x1b[201~\x18\x18" // ends any paste and any sequence
		whole, err := io.ReadAll(newKeys(strings.NewReader(before + end + typed)))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := io.ReadAll(newKeys(iotest.OneByteReader(strings.NewReader(before + end + typed))))
		if err != nil || string(pieces) != string(whole) {
			t.Errorf("whole %q, in pieces %q, %v", whole, pieces, err)
		}
		plain := strings.ContainsFunc(typed, func(r rune) bool {
			return r < ' ' || r == 0x7f || r == utf8.RuneError || r >= 0xfdd0 && r <= 0xfdd2 || r >= byteBase
		})
		if !plain && !strings.HasSuffix(string(whole), typed) {
			t.Errorf("%q then %q: got %q", before, typed, whole)
		}
	})
}
