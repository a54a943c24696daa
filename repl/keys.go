package repl

import (
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// byteBase + b is the character that encodes the byte b. readline edits characters, but users type
// and paste bytes. Control characters, and bytes that are not part of valid UTF-8, are therefore
// encoded. The bytes of real characters from byteBase on are encoded too, so any text can be edited
// without loss.
const byteBase = 0x10ff00

// Characters for keys that readline does not know. If a user types or pastes one of these
// characters, the function edited encodes its bytes, so readline never receives it as text.
const (
	keyNone   = '\ufdd0' // does nothing
	keyPaste  = '\ufdd1' // inserts the next paste
	keyDelete = '\ufdd2' // deletes the character under the cursor
)

func isKey(r rune) bool { return r >= keyNone && r <= keyDelete }

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
		_, reserved := byteOf(r)
		if r < ' ' || r == 0x7f || r == utf8.RuneError && size == 1 || isKey(r) || reserved {
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

// textOf decodes a line from readline. It is the inverse of edited, and omits the characters for keys.
func textOf(line []rune) string {
	var b strings.Builder
	for _, r := range line {
		if c, ok := byteOf(r); ok {
			b.WriteByte(c)
		} else if !isKey(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// keys translates the input from a terminal for readline, which understands characters,
// control characters, the cursor keys, and ESC before a letter as Meta. keys drops
// other escape sequences, and replaces each bracketed paste with keyPaste.
type keys struct {
	in  io.Reader
	buf [4096]byte
	out []byte // translated input that readline has not read
	err error

	waiting atomic.Bool // out is not empty

	state   func(byte) // handles the next byte
	seq     []byte     // parameters of an incomplete control sequence
	char    []byte     // bytes of an incomplete character
	pasting []byte     // bytes of an incomplete paste

	mu     sync.Mutex
	pastes []string // complete pastes, oldest first, until paste returns them
}

func newKeys(in io.Reader) *keys {
	k := &keys{in: in}
	k.state = k.ground
	return k
}

// Read implements io.Reader for readline. It returns one byte at a time, so that the method more can
// report whether further keys follow.
func (k *keys) Read(p []byte) (int, error) {
	for len(k.out) == 0 {
		if k.err != nil {
			return 0, k.err
		}
		n, err := k.in.Read(k.buf[:])
		for _, c := range k.buf[:n] {
			k.state(c)
		}
		k.err = err
	}
	n := copy(p[:min(len(p), 1)], k.out)
	k.out = k.out[n:]
	k.waiting.Store(len(k.out) > 0)
	return n, nil
}

// more reports whether another key has already arrived. If so, the line need not be drawn yet.
func (k *keys) more() bool { return k.waiting.Load() }

// paste removes and returns the oldest paste, or "" if there is none.
func (k *keys) paste() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pastes) == 0 {
		return ""
	}
	text := k.pastes[0]
	k.pastes = k.pastes[1:]
	return text
}

func (k *keys) emit(line []rune) { k.out = append(k.out, string(line)...) }

// ground handles a byte outside of escape sequences.
func (k *keys) ground(c byte) {
	if len(k.char) > 0 || c >= utf8.RuneSelf {
		k.character(c)
		return
	}
	switch c {
	case 0x00: // Ctrl-Space, which readline would treat as the end of the input
	case 0x1b:
		k.state = k.escape
	default:
		k.out = append(k.out, c)
	}
}

// character collects the bytes of a character that is not ASCII.
func (k *keys) character(c byte) {
	k.char = append(k.char, c)
	if !utf8.FullRune(k.char) {
		return
	}
	r, size := utf8.DecodeRune(k.char)
	if r == utf8.RuneError && size == 1 {
		invalid, rest := k.char[:1], k.char[1:]
		k.emit(edited(string(invalid)))
		k.char = nil
		for _, c := range rest { // a byte of rest may begin another character or sequence
			k.ground(c)
		}
		return
	}
	k.emit(edited(string(k.char)))
	k.char = k.char[:0]
}

// escape handles the byte after ESC.
func (k *keys) escape(c byte) {
	k.state = k.ground
	switch c {
	case '[':
		k.seq, k.state = k.seq[:0], k.control
	case 'O':
		k.state = k.shifted
	case 0x1b:
		k.state = k.escape
	case 'b', 'f', 'd', 0x7f:
		k.out = append(k.out, 0x1b, c)
	case 0x08:
		k.out = append(k.out, 0x1b, 0x7f)
	case '\r', '\n': // Meta-Enter continues the entry on the next line
		k.emit(edited("\n"))
	case 0x03:
		k.out = append(k.out, c)
	}
}

// control handles the next byte of a control sequence: ESC [, then parameters, then a final byte, which
// ends the sequence.
func (k *keys) control(c byte) {
	switch {
	case c < ' ': // the sequence was cut short
		k.state = k.ground
		k.ground(c)
	case c >= 0x40 && c <= 0x7e:
		k.state = k.ground
		k.sequence(string(k.seq), c)
	case len(k.seq) < 32:
		k.seq = append(k.seq, c)
	}
}

func (k *keys) sequence(parameters string, final byte) {
	_, modifier, _ := strings.Cut(parameters, ";")
	word := modifier == "3" || modifier == "5" // Alt or Ctrl
	switch {
	case final == '~':
		switch parameters {
		case "1", "7":
			k.out = append(k.out, 0x01)
		case "4", "8":
			k.out = append(k.out, 0x05)
		case "3":
			k.emit([]rune{keyDelete})
		case "3;3", "3;5":
			k.out = append(k.out, 0x1b, 'd')
		case "200":
			k.pasting, k.state = nil, k.pasted
		}
	case final == '[': // a function key of the Linux console
		k.state = k.dropped
	case final == 'C' && word:
		k.out = append(k.out, 0x1b, 'f')
	case final == 'D' && word:
		k.out = append(k.out, 0x1b, 'b')
	case strings.IndexByte(cursorKeys, final) >= 0:
		k.out = append(k.out, 0x1b, '[', final)
	}
}

// cursorKeys are the final bytes of the sequences that readline understands: the cursor
// keys, Home and End.
const cursorKeys = "ABCDHF"

func (k *keys) dropped(byte) { k.state = k.ground }

// shifted handles the byte after ESC O, which begins a cursor key in application mode.
func (k *keys) shifted(c byte) {
	k.state = k.ground
	switch {
	case strings.IndexByte(cursorKeys, c) >= 0:
		k.out = append(k.out, 0x1b, 'O', c)
	case c < ' ' || c >= 0x7f: // the sequence was cut short
		k.ground(c)
	}
}

const pasteEnd = "\x1b[201~"

// pasted collects a paste up to its end mark.
func (k *keys) pasted(c byte) {
	k.pasting = append(k.pasting, c)
	if c != '~' || !strings.HasSuffix(string(k.pasting[max(0, len(k.pasting)-len(pasteEnd)):]), pasteEnd) {
		return
	}
	// Terminals send CR for each line end, as for the Enter key.
	text := string(k.pasting[:len(k.pasting)-len(pasteEnd)])
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	k.mu.Lock()
	k.pastes = append(k.pastes, text)
	k.mu.Unlock()
	k.pasting, k.state = nil, k.ground
	k.emit([]rune{keyPaste})
}
