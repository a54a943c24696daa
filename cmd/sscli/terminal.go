package main

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
)

// A terminalError is a question that cannot be asked.
type terminalError struct{ err error }

func (e *terminalError) Error() string { return "no terminal to ask on: " + e.err.Error() }

func (e *terminalError) Unwrap() error { return e.err }

// ask prints a question on standard error and reads the answer, a line, from the
// terminal. A signal ends it.
func ask(ctx context.Context, stderr *os.File, question string) (string, error) {
	tty, err := openTerminal()
	if err != nil {
		return "", &terminalError{err}
	}
	defer tty.Close()
	fmt.Fprint(stderr, question)
	line, err := interruptible(ctx, func() (string, error) { return readAnswer(tty) }, func() bool {
		return tty.SetReadDeadline(time.Now()) == nil
	})
	if err != nil {
		fmt.Fprintln(stderr) // the cursor stands behind the question
	}
	return line, err
}

// askSecret asks on the terminal itself, wherever the standard streams lead, and
// reads a line without showing it.
func askSecret(ctx context.Context, stderr *os.File, question string) (secret []byte, err error) {
	tty, err := openTerminal()
	if err != nil {
		return nil, &terminalError{err}
	}
	defer tty.Close()
	var out io.Writer = tty
	if term.IsTerminal(int(stderr.Fd())) {
		out = stderr
	}
	// Before the question: who sees it may type.
	show, err := hideInput(tty)
	if err != nil {
		return nil, &terminalError{err}
	}
	fmt.Fprint(out, question)
	defer func() {
		err = errors.Join(err, show())
		fmt.Fprintln(out)
	}()
	return interruptible(ctx, func() ([]byte, error) { return readSecretLine(tty) }, func() bool {
		return tty.SetReadDeadline(time.Now()) == nil
	})
}

// hideInput lets a terminal pass on what is typed as it is, and show none of it. show
// undoes that.
func hideInput(tty *os.File) (show func() error, err error) {
	// Not Fd, after which a read could not be ended.
	conn, err := tty.SyscallConn()
	if err != nil {
		return nil, err
	}
	var before *term.State
	if controlErr := conn.Control(func(fd uintptr) { before, err = term.MakeRaw(int(fd)) }); controlErr != nil || err != nil {
		return nil, errors.Join(controlErr, err)
	}
	return func() (err error) {
		return errors.Join(conn.Control(func(fd uintptr) { err = term.Restore(int(fd), before) }), err)
	}, nil
}

// readSecretLine reads a line from a terminal that leaves the editing and the signals
// to its reader.
func readSecretLine(r io.Reader) ([]byte, error) {
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
			return nil, &interruptError{syscall.SIGINT}
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

// interruptible waits for read, or for a signal, at which stop may be able to end
// the read. Where it is not, the read ends with the process.
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
	var none T
	select {
	case r := <-done:
		if _, interrupted := errors.AsType[*interruptError](r.err); r.err != nil && !interrupted {
			r.err = fmt.Errorf("the terminal: %w", r.err)
		}
		return r.value, r.err
	case <-ctx.Done():
		if stop() {
			<-done
		}
		return none, context.Cause(ctx)
	}
}

// readAnswer reads no more than the line: what comes behind it is for others. The end
// of input ends the line too.
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
