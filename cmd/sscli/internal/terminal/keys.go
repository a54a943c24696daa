package terminal

import (
	"bytes"
	"errors"
	"os"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Keys reads a terminal key by key. After [Keys.Raw] the terminal does not echo.
type Keys struct {
	tty    *os.File
	before *term.State // the terminal's state before Raw; nil = not in raw mode
}

// OpenKeys opens the terminal that sscli was started from. The error is an *[Error].
func OpenKeys() (*Keys, error) {
	tty, err := openTerminal()
	if err != nil {
		return nil, err
	}
	return &Keys{tty: tty}, nil
}

// Raw puts the terminal in raw mode. Ctrl-C and Ctrl-Z are then keys, not signals.
func (k *Keys) Raw() error {
	return k.control(func(fd int) (err error) {
		if k.before == nil {
			k.before, err = term.MakeRaw(fd)
		}
		return err
	})
}

// Restore undoes Raw.
func (k *Keys) Restore() error {
	return k.control(func(fd int) (err error) {
		if k.before != nil {
			err = term.Restore(fd, k.before)
			k.before = nil
		}
		return err
	})
}

// control calls f with the file descriptor. It does not call File.Fd, because deadlines may not work
// after that, and Interrupt could not end a read.
func (k *Keys) control(f func(fd int) error) error {
	conn, err := k.tty.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := conn.Control(func(fd uintptr) { err = f(int(fd)) })
	return errors.Join(controlErr, err)
}

// Close undoes Raw and closes the terminal.
func (k *Keys) Close() error { return errors.Join(k.Restore(), k.tty.Close()) }

// Read calls f with the bytes that the user types, until f returns false, [Keys.Interrupt] is
// called, or the terminal is gone. f may keep the bytes.
func (k *Keys) Read(f func([]byte) bool) error {
	for {
		b := make([]byte, 256)
		n, err := k.tty.Read(b)
		switch {
		case n > 0 && !f(b[:n]):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return named(err)
		}
	}
}

// Interrupt ends Read. If the system cannot interrupt Read, it returns false, and Read continues until
// the function that it calls returns false.
func (k *Keys) Interrupt() bool { return k.tty.SetReadDeadline(time.Now()) == nil }

// A Key is a key that the user typed: a printable character or one of the constants below.
type Key rune

// The keys that are not printable characters.
const (
	KeyUp Key = -(iota + 1)
	KeyDown
	KeyPageUp
	KeyPageDown
	KeyHome
	KeyEnd
	KeyEnter
	KeyEscape
	KeyBackspace
	KeyInterrupt // Ctrl-C
	KeySuspend   // Ctrl-Z
	KeyClear     // Ctrl-U
	KeyRedraw    // Ctrl-L
	KeyOther     // any other key
)

const escape = 0x1b

// ParseKeys parses bytes from a terminal in raw mode. rest holds the bytes of an incomplete key at the
// end. An ESC at the end is the Escape key, because terminals send control sequences in one piece.
func ParseKeys(b []byte) (keys []Key, rest []byte) {
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
		keys, b = append(keys, parseCharacter(r, size)), b[size:]
	}
	return keys, nil
}

func parseCharacter(r rune, size int) Key {
	switch r {
	case 3:
		return KeyInterrupt
	case 8, 127:
		return KeyBackspace
	case 12:
		return KeyRedraw
	case '\r', '\n':
		return KeyEnter
	case 21:
		return KeyClear
	case 26:
		return KeySuspend
	case escape:
		return KeyEscape
	}
	if !unicode.IsPrint(r) || r == utf8.RuneError && size == 1 {
		return KeyOther
	}
	return Key(r)
}

// maxSequence is the maximum length of a key's control sequence, in bytes.
const maxSequence = 16

// parseSequence parses a control sequence (ECMA-48, 5.4), or ESC O and the character of a keypad key.
// size is the length of the sequence, or 0 if it is incomplete.
func parseSequence(b []byte) (k Key, size int) {
	final := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	switch {
	case final < 0 && len(b) < maxSequence:
		return KeyOther, 0
	case final < 0 || final > maxSequence:
		return KeyOther, 2
	}
	size = 2 + final + 1
	sequences := map[string]Key{ // terminals send different sequences for the same key
		"[A": KeyUp, "OA": KeyUp, "[B": KeyDown, "OB": KeyDown, "[5~": KeyPageUp, "[6~": KeyPageDown,
		"[H": KeyHome, "OH": KeyHome, "[1~": KeyHome, "[7~": KeyHome,
		"[F": KeyEnd, "OF": KeyEnd, "[4~": KeyEnd, "[8~": KeyEnd, "OM": KeyEnter,
	}
	if k, ok := sequences[string(b[1:size])]; ok {
		return k, size
	}
	return KeyOther, size
}
