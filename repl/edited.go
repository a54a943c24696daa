package repl

import (
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/internal/keyboard"
)

// byteBase + b is the character that encodes the byte b. readline edits characters, but users type
// and paste bytes. Control characters, and bytes that are not part of valid UTF-8, are therefore
// encoded. The bytes of real characters from byteBase on are encoded too, so any text can be edited
// without loss.
const byteBase = 0x10ff00

// byteOf returns the byte that the function edited encoded as r. ok is false if r is not an encoded
// byte.
func byteOf(r rune) (c byte, ok bool) {
	return byte(r - byteBase), r >= byteBase && r <= byteBase+0xff
}

// edited encodes a text for readline, as described at byteBase.
func edited(text string) []rune {
	line := make([]rune, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if _, reserved := byteOf(r); r < ' ' || r == 0x7f || r == utf8.RuneError && size == 1 || reserved {
			for _, c := range []byte(text[:size]) {
				line = append(line, byteBase+rune(c))
			}
		} else {
			line = append(line, r)
		}
		text = text[size:]
	}
	return line
}

// typed encodes what a key inserts; nil = nothing.
func typed(key keyboard.Key) []rune {
	switch {
	case key >= keyboard.Byte && key < keyboard.Alt:
		return edited(string([]byte{byte(key - keyboard.Byte)}))
	case key >= ' ' && key != keyboard.Backspace && key < keyboard.Byte:
		return edited(string(rune(key)))
	}
	return nil
}

// textOf decodes a line. It is the inverse of edited.
func textOf(line []rune) string {
	var b strings.Builder
	for _, r := range line {
		if c, ok := byteOf(r); ok {
			b.WriteByte(c)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
