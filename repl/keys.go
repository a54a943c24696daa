package repl

import (
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// An edited line is a slice of characters, but what is typed and pasted is bytes.
// A byte that is no character of its own, be it a control character or not UTF-8,
// stands in the line as a character that no text has, behind byteBase. The
// characters from byteBase on stand for their bytes themselves, so that every text
// can be edited and comes back as it was.
const byteBase = 0x10ff00

// Keys for which readline has no name; no text has these characters either.
const (
	keyNone   = '\ufdd0' // nothing happens
	keyPaste  = '\ufdd1' // the next of what was pasted
	keyDelete = '\ufdd2' // delete what is under the cursor
)

func isKey(r rune) bool { return r >= keyNone && r <= keyDelete }

// byteOf is the byte that a character stands for.
func byteOf(r rune) (byte, bool) {
	return byte(r - byteBase), r >= byteBase && r <= byteBase+0xff
}

// edited is a text as a line to edit.
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

// textOf is the inverse of edited.
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

// keys reads what a terminal sends and says it as readline understands it:
// characters, control characters, and an escape before a letter for Meta. Escape
// sequences that mean nothing here are dropped. It is where bracketed paste is
// taken out of the stream.
type keys struct {
	in  io.Reader
	buf [4096]byte
	out []byte // to be read
	err error

	waiting atomic.Bool

	state   func(byte)
	seq     []byte // of an escape sequence
	char    []byte // of a character that is not complete
	pasting []byte

	mu     sync.Mutex
	pastes []string // whole ones that nobody took yet
}

func newKeys(in io.Reader) *keys {
	k := &keys{in: in}
	k.state = k.ground
	return k
}

// Read makes it an io.Reader, for readline. It gives one byte at a time, so that it is
// known whether there are more.
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

// more tells whether there are keys that came already: what is drawn now would be
// drawn over.
func (k *keys) more() bool { return k.waiting.Load() }

// paste returns the oldest paste that was not taken.
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

func (k *keys) ground(c byte) {
	if len(k.char) > 0 || c >= utf8.RuneSelf {
		k.character(c)
		return
	}
	switch c {
	case 0x00: // Ctrl-Space; readline would take it for the end
	case 0x1b:
		k.state = k.escape
	default:
		k.out = append(k.out, c)
	}
}

// character collects the bytes of one that has several.
func (k *keys) character(c byte) {
	k.char = append(k.char, c)
	if !utf8.FullRune(k.char) {
		return
	}
	// If it is not UTF-8, the last byte may begin something else.
	r, size := utf8.DecodeRune(k.char)
	if r == utf8.RuneError && size == 1 {
		wrong, rest := k.char[:1], k.char[1:]
		k.emit(edited(string(wrong)))
		k.char = nil
		for _, c := range rest {
			k.ground(c)
		}
		return
	}
	k.emit(edited(string(k.char)))
	k.char = k.char[:0]
}

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
	case '\r', '\n': // Meta-Enter: go on in the next line
		k.emit(edited("\n"))
	case 0x03:
		k.out = append(k.out, c)
	}
}

// control collects a control sequence, ESC [ parameters final.
func (k *keys) control(c byte) {
	switch {
	case c < ' ': // the sequence was cut off
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

// cursorKeys are the final bytes of the cursor keys, Home and End, which readline knows.
const cursorKeys = "ABCDHF"

func (k *keys) dropped(byte) { k.state = k.ground }

// shifted takes the byte after ESC O, which cursor keys send in application mode.
func (k *keys) shifted(c byte) {
	k.state = k.ground
	switch {
	case strings.IndexByte(cursorKeys, c) >= 0:
		k.out = append(k.out, 0x1b, 'O', c)
	case c < ' ' || c >= 0x7f: // the sequence was cut off
		k.ground(c)
	}
}

const pasteEnd = "\x1b[201~"

// pasted collects what was pasted, up to its end.
func (k *keys) pasted(c byte) {
	k.pasting = append(k.pasting, c)
	if c != '~' || !strings.HasSuffix(string(k.pasting[max(0, len(k.pasting)-len(pasteEnd)):]), pasteEnd) {
		return
	}
	// Terminals send line ends as Enter does.
	text := string(k.pasting[:len(k.pasting)-len(pasteEnd)])
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	k.mu.Lock()
	k.pastes = append(k.pastes, text)
	k.mu.Unlock()
	k.pasting, k.state = nil, k.ground
	k.emit([]rune{keyPaste})
}
