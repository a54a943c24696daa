// Package keyboard decodes what a terminal in raw mode sends when the user presses keys or pastes text.
//
//	var d keyboard.Decoder
//	for _, key := range d.Decode(bytes) {
//		if key == keyboard.Paste {
//			text := d.Paste()
//		}
//	}
//
// The decoder understands characters, ESC before a character as the Alt key, the sequences that terminals send for
// the cursor keys, and bracketed pastes. Any other sequence is a single key, [Other].
package keyboard

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"
)

// A Key is a key that the user pressed: a character, also a control character; [Alt] and a character; [Byte] and a
// byte; or one of the keys that have no character.
type Key rune

// Control characters. A terminal sends one of two bytes for Enter and for Backspace; the decoder returns these.
const (
	Interrupt Key = 0x03 // Ctrl-C
	Enter     Key = '\r'
	Escape    Key = 0x1b
	Backspace Key = 0x7f
)

// Keys that have no character.
const (
	Up Key = -(iota + 1)
	Down
	Left
	Right
	WordLeft  // Ctrl-Left or Alt-Left
	WordRight // Ctrl-Right or Alt-Right
	PageUp
	PageDown
	Home
	End
	Delete
	DeleteWord // Ctrl-Delete or Alt-Delete
	Paste      // a paste, see Decoder.Paste
	Other      // any other key
)

// What is added to a byte or a character.
const (
	Byte Key = 1 << 21 // is added to a byte that is not part of UTF-8
	Alt  Key = 1 << 22 // is added to a character that the user typed with the Alt key
)

// A Decoder decodes the bytes from a terminal. The zero Decoder is ready to use.
type Decoder struct {
	// LoneEscape makes an ESC at the end of the bytes passed to Decode the Escape key: terminals send a sequence in one
	// piece. Otherwise the ESC belongs to the next character, which users type with it where there is no Alt key.
	LoneEscape bool

	keys    []Key
	state   func(*Decoder, byte) // handles the next byte; nil = ground
	alt     Key                  // Alt after an ESC, otherwise 0
	seq     []byte               // parameters of an incomplete control sequence
	char    []byte               // bytes of an incomplete character
	pasting []byte               // bytes of an incomplete paste
	pastes  []string             // complete pastes, oldest first, until Paste returns them
}

// Decode returns the keys in b. If b ends within a key or a paste, the next call continues it.
func (d *Decoder) Decode(b []byte) []Key {
	d.keys = nil
	for _, c := range b {
		if d.state == nil {
			d.ground(c)
		} else {
			d.state(d, c)
		}
	}
	if d.LoneEscape && d.alt != 0 && d.state == nil && len(d.char) == 0 {
		d.alt = 0
		d.emit(Escape)
	}
	return d.keys
}

// Paste removes and returns the text of the oldest paste, whose key the caller has got from Decode. Its lines end in LF.
func (d *Decoder) Paste() (text string) {
	text, d.pastes = d.pastes[0], d.pastes[1:]
	return text
}

func (d *Decoder) emit(k Key) { d.keys = append(d.keys, k) }

// ground handles a byte outside of control sequences.
func (d *Decoder) ground(c byte) {
	switch {
	case len(d.char) > 0 || c >= utf8.RuneSelf:
		d.character(c)
		return
	case d.alt != 0 && c == '[':
		d.seq, d.state = d.seq[:0], (*Decoder).control
	case d.alt != 0 && c == 'O':
		d.state = (*Decoder).shifted
	case c == byte(Escape):
		if d.alt != 0 {
			d.emit(Escape)
		}
		d.alt = Alt
		return
	case c == '\r' || c == '\n':
		d.emit(d.alt + Enter)
	case c == 0x08 || c == 0x7f:
		d.emit(d.alt + Backspace)
	case c < ' ':
		if d.alt != 0 {
			d.emit(Escape)
		}
		d.emit(Key(c))
	default:
		d.emit(d.alt + Key(c))
	}
	d.alt = 0
}

// character collects the bytes of a character that is not ASCII.
func (d *Decoder) character(c byte) {
	d.char = append(d.char, c)
	if !utf8.FullRune(d.char) {
		return
	}
	whole := d.char
	d.char = nil
	r, size := utf8.DecodeRune(whole)
	if r != utf8.RuneError || size > 1 {
		d.emit(d.alt + Key(r))
		d.alt = 0
		return
	}
	d.emit(Byte + Key(whole[0]))
	d.alt = 0
	for _, c := range whole[1:] { // these bytes may begin another character or sequence
		d.ground(c)
	}
}

// control handles the next byte of a control sequence (ECMA-48, 5.4): ESC [, then parameters, then a final byte,
// which ends the sequence.
func (d *Decoder) control(c byte) {
	switch {
	case c < ' ': // the sequence was cut short
		d.state = nil
		d.ground(c)
	case c >= 0x40 && c <= 0x7e:
		d.state = nil
		d.sequence(string(d.seq), c)
	case len(d.seq) < 32:
		d.seq = append(d.seq, c)
	}
}

func (d *Decoder) sequence(parameters string, final byte) {
	number, modifier, _ := strings.Cut(parameters, ";")
	name := string(rune(final))
	if final == '~' {
		name = number + name
	}
	switch {
	case name == "[": // a function key of the Linux console
		d.state = (*Decoder).functionKey
		return
	case name == "200~":
		d.pasting, d.state = nil, (*Decoder).pasted
		return
	case modifier == "3" || modifier == "5": // Alt or Ctrl
		if word, ok := map[string]Key{"C": WordRight, "D": WordLeft, "3~": DeleteWord}[name]; ok {
			d.emit(word)
			return
		}
	}
	d.emit(named(name))
}

func named(name string) Key {
	return cmp.Or(map[string]Key{
		"A": Up, "B": Down, "C": Right, "D": Left, "F": End, "H": Home,
		"1~": Home, "3~": Delete, "4~": End, "5~": PageUp, "6~": PageDown, "7~": Home, "8~": End,
	}[name], Other)
}

func (d *Decoder) functionKey(byte) {
	d.state = nil
	d.emit(Other)
}

// shifted handles the byte after ESC O: a cursor key in application mode, or a key of the keypad.
func (d *Decoder) shifted(c byte) {
	d.state = nil
	switch {
	case c < ' ' || c >= 0x7f: // the sequence was cut short
		d.ground(c)
	case c == 'M':
		d.emit(Enter)
	default:
		d.emit(named(string(rune(c))))
	}
}

const pasteEnd = "\x1b[201~"

// pasted collects a paste up to its end mark.
func (d *Decoder) pasted(c byte) {
	d.pasting = append(d.pasting, c)
	text, ended := bytes.CutSuffix(d.pasting, []byte(pasteEnd))
	if !ended {
		return
	}
	// Terminals send CR for each line end, as for the Enter key.
	d.pastes = append(d.pastes, strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(text)))
	d.pasting, d.state = nil, nil
	d.emit(Paste)
}
