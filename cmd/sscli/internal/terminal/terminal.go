// Package terminal talks to the user at the terminal.
//
//	answer, err := terminal.Ask(ctx, os.Stderr, "Continue? [y/N] ")
//
// [Ask] and [AskSecret] open the terminal itself, wherever the standard streams lead;
// [ReadAll] reads standard input; a [Line] is redrawn below the other output; [Keys] is a
// terminal for a program that draws the whole screen. Whatever waits for the user ends with its context, and the terminal is then as it was before.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

// An Error is a question that cannot be asked, because there is no terminal.
type Error struct{ Err error }

func (e *Error) Error() string { return "no terminal to ask on: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Ask prints a question on standard error and reads a line from the terminal. The error
// is an *[Error], or the cause of the end of ctx.
func Ask(ctx context.Context, stderr *os.File, question string) (string, error) {
	tty, err := openTerminal()
	if err != nil {
		return "", &Error{err}
	}
	defer tty.Close()
	fmt.Fprint(stderr, question)
	line, err := interruptible(ctx, func() (string, error) {
		line, err := readAnswer(tty)
		return line, named(err)
	}, func() bool {
		return tty.SetReadDeadline(time.Now()) == nil
	})
	if err != nil {
		fmt.Fprintln(stderr) // the cursor is after the question
	}
	return line, err
}

// AskSecret asks on the terminal itself and reads a line without showing it. Its errors
// are those of [Ask], and an *[signals.Interrupted] if Ctrl-C was typed.
func AskSecret(ctx context.Context, stderr *os.File, question string) (secret []byte, err error) {
	tty, err := openTerminal()
	if err != nil {
		return nil, &Error{err}
	}
	defer tty.Close()
	var out io.Writer = tty
	if term.IsTerminal(int(stderr.Fd())) {
		out = stderr
	}
	// Before the question: the user may type as soon as it appears.
	keys := Keys{tty: tty}
	if err := keys.Raw(); err != nil {
		return nil, &Error{err}
	}
	fmt.Fprint(out, question)
	defer func() {
		err = errors.Join(err, keys.Restore())
		fmt.Fprintln(out)
	}()
	return interruptible(ctx, func() ([]byte, error) {
		line, err := ReadSecretLine(tty)
		return line, named(err)
	}, func() bool {
		return tty.SetReadDeadline(time.Now()) == nil
	})
}

// ReadSecretLine reads a line from a terminal in raw mode: backspace, Ctrl-U, Ctrl-C and
// Ctrl-D do what they do in cooked mode.
func ReadSecretLine(r io.Reader) ([]byte, error) {
	const interrupt, end, backspace, kill, rubout = 3, 4, 8, 21, 127
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := r.Read(b)
		if n == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if err != nil || len(line) > 0 {
				return line, err
			}
			return nil, errors.New("no password was typed")
		}
		switch b[0] {
		case '\r', '\n':
			return line, nil
		case end:
			if len(line) == 0 {
				return nil, errors.New("no password was typed")
			}
		case interrupt:
			return nil, &signals.Interrupted{Signal: syscall.SIGINT}
		case kill:
			line = line[:0]
		case backspace, rubout:
			_, size := utf8.DecodeLastRune(line)
			line = line[:len(line)-size]
		default:
			line = append(line, b[0])
		}
	}
}

// ReadAll reads r to its end. If ctx ends before, the error is the cause of that, and
// the read goes on in another goroutine until r or the process ends.
func ReadAll(ctx context.Context, r io.Reader) ([]byte, error) {
	return interruptible(ctx, func() ([]byte, error) { return io.ReadAll(r) }, func() bool { return false })
}

// interruptible waits for read, or for the end of ctx. At that, stop is called to end
// the read, and reports whether it can; otherwise the read goes on by itself.
func interruptible[T any](ctx context.Context, read func() (T, error), stop func() bool) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		if stop() {
			<-done
		}
		var none T
		return none, context.Cause(ctx)
	}
}

// named says in an error of reading that it is the terminal's.
func named(err error) error {
	if _, ok := errors.AsType[*signals.Interrupted](err); ok || err == nil {
		return err
	}
	return fmt.Errorf("the terminal: %w", err)
}

// readAnswer reads one line and nothing after it, which is for other readers. The end of
// input ends the line too.
func readAnswer(f *os.File) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := f.Read(b)
		switch {
		case n == 1 && b[0] == '\n', errors.Is(err, io.EOF):
			return string(line), nil
		case n == 1:
			line = append(line, b[0])
		case err != nil:
			return "", err
		}
	}
}
