package top

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A key is something typed: a printable character, or one of those below.
type key rune

const (
	keyUp key = -(iota + 1)
	keyDown
	keyPageUp
	keyPageDown
	keyHome
	keyEnd
	keyEnter
	keyEscape
	keyBackspace
	keyInterrupt // Ctrl-C
	keySuspend   // Ctrl-Z
	keyClear     // Ctrl-U
	keyRedraw    // Ctrl-L
	keyOther     // one that means nothing here
)

const escape = 0x1b

// parseKeys returns the keys in what a terminal in raw mode has sent, and the bytes of a last
// one that is not whole. An escape at the end is the key of that name: a terminal sends a
// sequence in one piece.
func parseKeys(b []byte) (keys []key, rest []byte) {
	for len(b) > 0 {
		if len(b) > 1 && b[0] == escape && (b[1] == '[' || b[1] == 'O') {
			k, size := parseSequence(b)
			if size == 0 {
				return keys, b
			}
			keys, b = append(keys, k), b[size:]
			continue
		}
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 && !utf8.FullRune(b) {
			return keys, b
		}
		keys, b = append(keys, character(r, size)), b[size:]
	}
	return keys, nil
}

func character(r rune, size int) key {
	switch r {
	case 3:
		return keyInterrupt
	case 8, 127:
		return keyBackspace
	case 12:
		return keyRedraw
	case '\r', '\n':
		return keyEnter
	case 21:
		return keyClear
	case 26:
		return keySuspend
	case escape:
		return keyEscape
	}
	if !unicode.IsPrint(r) || r == utf8.RuneError && size == 1 {
		return keyOther
	}
	return key(r)
}

// mostSequence is how long a sequence may be: no key has a longer one.
const mostSequence = 16

// parseSequence reads a control sequence (ECMA-48, 5.4), or a key of a keypad: size is 0 if it
// is not whole.
func parseSequence(b []byte) (k key, size int) {
	final := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	switch {
	case final < 0 && len(b) < mostSequence:
		return keyOther, 0
	case final < 0 || final > mostSequence:
		return keyOther, 2
	}
	size = 2 + final + 1
	switch string(b[1:size]) {
	case "[A", "OA":
		return keyUp, size
	case "[B", "OB":
		return keyDown, size
	case "[5~":
		return keyPageUp, size
	case "[6~":
		return keyPageDown, size
	case "[H", "OH", "[1~", "[7~":
		return keyHome, size
	case "[F", "OF", "[4~", "[8~":
		return keyEnd, size
	case "OM":
		return keyEnter, size
	}
	return keyOther, size
}
