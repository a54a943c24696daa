package keyboard

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// decode decodes what a terminal sent, in one piece or byte by byte.
func decode(d *Decoder, sent string, size int) (keys []Key, pastes []string) {
	for b := range slices.Chunk([]byte(sent), max(size, 1)) {
		for _, k := range d.Decode(b) {
			if keys = append(keys, k); k == Paste {
				pastes = append(pastes, d.Paste())
			}
		}
	}
	return keys, pastes
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		sent string
		want []Key
	}{
		{"q é日😀", []Key{'q', ' ', 'é', '日', '😀'}},
		{"\r\n\x7f\x08\x03\x00\x0f", []Key{Enter, Enter, Backspace, Backspace, Interrupt, 0, 0x0f}},
		{"\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F", []Key{Up, Down, Right, Left, Home, End}},
		{"\x1bOA\x1bOB\x1bOF\x1bOM\x1bOP", []Key{Up, Down, End, Enter, Other}},
		{"\x1b[1~\x1b[4~\x1b[7~\x1b[8~\x1b[2~\x1b[5~\x1b[6~\x1b[3~", []Key{Home, End, Home, End, Other, PageUp, PageDown, Delete}},
		{"\x1b[1;5C\x1b[1;5D\x1b[1;3D\x1b[1;2D\x1b[3;5~\x1b[1;5H", []Key{WordRight, WordLeft, WordLeft, Left, DeleteWord, Home}},
		{"\x1bb\x1b\x7f\x1b\x08\x1bé", []Key{Alt + 'b', Alt + Backspace, Alt + Backspace, Alt + 'é'}},
		{"\x1b\ra\x1b\nb", []Key{Alt + Enter, 'a', Alt + Enter, 'b'}},
		{"\x1b[[Aa\x1b[15~b\x1b[<0;1;1Mc", []Key{Other, 'a', Other, 'b', Other, 'c'}},
		{"\x1b\x1b[A", []Key{Escape, Up}},
		{"\x1b\x03\x1b[1;\x03a\x1bO\x03b", []Key{Escape, Interrupt, Interrupt, 'a', Interrupt, 'b'}}, // incomplete sequences
		{"\x1bO\x1b[C", []Key{Right}},
		{"\x1b[" + strings.Repeat("1", 100) + "Ab", []Key{Up, 'b'}},
		{"\xff\xc3(\xe2\x82a", []Key{Byte + 0xff, Byte + 0xc3, '(', Byte + 0xe2, Byte + 0x82, 'a'}},
		{"\x1b[200~a\r\n\x1b[Ab\x1b[201~c", []Key{Paste, 'c'}},
	} {
		for _, size := range []int{len(tt.sent), 1} {
			got, _ := decode(&Decoder{}, tt.sent, size)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q in pieces of %d bytes (-want +got):\n%s", tt.sent, size, diff)
			}
		}
	}
}

// TestEscape: ESC is a key if nothing follows it at once.
func TestEscape(t *testing.T) {
	d := Decoder{LoneEscape: true}
	for _, tt := range []struct {
		sent string
		want []Key
	}{
		{"\x1b", []Key{Escape}},
		{"\x1b\x1b", []Key{Escape, Escape}},
		{"\x1b[", nil},
		{"A", []Key{Up}},
		{"\x1bx", []Key{Alt + 'x'}},
		{"x\x1b", []Key{'x', Escape}},
		{"\x1b\xc3", nil},
		{"\xa9", []Key{Alt + 'é'}},
	} {
		if diff := cmp.Diff(tt.want, d.Decode([]byte(tt.sent))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.sent, diff)
		}
	}
}

func TestPaste(t *testing.T) {
	_, got := decode(&Decoder{}, "\x1b[200~a\r\n\rb\x1b[201\x1b[201~\x1b[200~c\x00\x1b[201~", 5)
	if diff := cmp.Diff([]string{"a\n\nb\x1b[201", "c\x00"}, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzDecode: text is returned unchanged, whatever the terminal sent before, and however its bytes are divided.
func FuzzDecode(f *testing.F) {
	f.Add("\x1b[1;5C", "abc")
	f.Add("\x1b[200~x", "é")
	f.Add("\xe2\x82", "x")
	f.Fuzz(func(t *testing.T, before, typed string) {
		const end = "\x1b[201~\x18\x18" // ends any paste and any sequence
		sent := before + end + typed
		whole, pasted := decode(&Decoder{}, sent, len(sent))
		pieces, pastedToo := decode(&Decoder{}, sent, 1)
		if !slices.Equal(whole, pieces) || !slices.Equal(pasted, pastedToo) {
			t.Errorf("%q: whole %v %q, in pieces %v %q", sent, whole, pasted, pieces, pastedToo)
		}
		if strings.ContainsFunc(typed, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) {
			return
		}
		var want []Key
		for _, r := range typed {
			want = append(want, Key(r))
		}
		if got := whole[max(0, len(whole)-len(want)):]; !slices.Equal(got, want) {
			t.Errorf("%q then %q: got %v", before, typed, whole)
		}
	})
}
