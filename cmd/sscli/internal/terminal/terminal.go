// Package terminal asks the user questions, reads keys, and prints on the terminal.
//
//	answer, err := terminal.Ask(ctx, stderr, "Continue? [y/N] ")
//
// [Ask] and [AskSecret] open the terminal itself, so they work even if the standard streams are
// redirected. [ReadAll] reads standard input. A [Stream] makes printers for standard output and
// standard error. A [Line] is redrawn below the other output. A [Screen] draws lines on
// the whole terminal, and its [Keys] read single keys, for commands such as `sscli top`. Ask, AskSecret, ReadFile and ReadAll return when their context ends.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/signals"
)

// A Job is an event that [WatchJob] sends.
type Job int

// The events of [WatchJob].
const (
	JobResized   Job = iota // the terminal may have another size
	JobContinued            // the process was continued
	JobStop                 // the process got SIGTSTP
)

// An Error means that there is no terminal to ask a question or to read keys on.
type Error struct{ Err error }

func (e *Error) Error() string { return "no terminal to ask on: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// openTerminal opens the terminal that sscli was started from. The error is an *[Error].
func openTerminal() (*os.File, error) {
	tty, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return nil, &Error{err}
	}
	return tty, nil
}

// Ask prints a question on standard error and reads a line from the terminal. The error is an *[Error]
// if there is no terminal, and the cause of ctx if ctx ends first.
func Ask(ctx context.Context, stderr *Output, question string) (string, error) {
	tty, err := openTerminal()
	if err != nil {
		return "", err
	}
	defer tty.Close()
	fmt.Fprint(stderr, question)
	line, err := readFrom(ctx, tty, readAnswer)
	if err != nil {
		fmt.Fprintln(stderr) // end the line of the question
	}
	return line, err
}

// AskSecret prints a question on the terminal and reads a line without echo. It returns the same errors
// as [Ask], and a *[signals.Interrupted] if the user types Ctrl-C.
func AskSecret(ctx context.Context, stderr *Output, question string) (secret []byte, err error) {
	tty, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	out := io.Writer(tty)
	if term.IsTerminal(int(stderr.Fd())) {
		out = stderr
	}
	// Turn off the echo before the question, because the user may type as soon as it appears.
	keys := Keys{tty: tty}
	if err := keys.Raw(); err != nil {
		return nil, &Error{err}
	}
	fmt.Fprint(out, question)
	defer func() {
		err = errors.Join(err, keys.Restore())
		fmt.Fprintln(out)
	}()
	return readFrom(ctx, tty, func(tty *os.File) ([]byte, error) { return ReadSecretLine(tty) })
}

// readFrom calls read with the terminal. When ctx ends, it interrupts the read.
func readFrom[T any](ctx context.Context, tty *os.File, read func(*os.File) (T, error)) (T, error) {
	return interruptible(ctx, func() (T, error) {
		v, err := read(tty)
		return v, named(err)
	}, func() bool { return tty.SetReadDeadline(time.Now()) == nil })
}

// ReadSecretLine reads a line from a terminal in raw mode. Backspace and Ctrl-U have their usual
// effect. The error after Ctrl-C is a *[signals.Interrupted]. Ctrl-D on an empty line is an error
// too.
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

// ReadAll reads at most limit bytes of r, to its end. If ctx ends first, the error is the cause of ctx, and the read
// continues in another goroutine until r or the process ends.
func ReadAll(ctx context.Context, r io.Reader, limit int64) (string, error) {
	return interruptible(ctx, func() (string, error) { return readAll(r, limit) }, func() bool { return false })
}

// interruptible runs read in a goroutine and waits until read returns or ctx ends. When ctx ends,
// interruptible calls stop, which reports whether it has ended the read. If stop returns false,
// read continues in its goroutine.
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

// named prefixes a read error with "the terminal". It returns a *[signals.Interrupted] unchanged.
func named(err error) error {
	if _, ok := errors.AsType[*signals.Interrupted](err); ok || err == nil {
		return err
	}
	return fmt.Errorf("the terminal: %w", err)
}

// readAnswer reads one line. One call to Read is enough, because a terminal returns one line at a time.
// At the end of the input, the line may lack a newline.
func readAnswer(f *os.File) (string, error) {
	line := make([]byte, 4096) // the longest line that a terminal accepts
	n, err := f.Read(line)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimRight(string(line[:n]), "\r\n"), err
}
