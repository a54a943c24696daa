package terminal

import (
	"errors"
	"os"
	"time"

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
