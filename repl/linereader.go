package repl

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// A LineReader reads entries from a terminal that understands no escape sequences. The
// operating system's line discipline edits the lines.
type LineReader struct {
	in  *bufio.Reader
	out io.Writer

	reading     reading[readResult]
	interrupted chan struct{} // a call to Interrupt that ReadEntry has not handled; capacity 1

	mu     sync.Mutex
	prompt string
	asked  bool // ReadEntry has printed a prompt and waits for a line
}

type readResult struct {
	text string
	err  error
}

// NewLineReader returns a LineReader that reads from in and prints prompts on out.
func NewLineReader(in io.Reader, out io.Writer) *LineReader {
	return &LineReader{in: bufio.NewReader(in), out: out, interrupted: make(chan struct{}, 1)}
}

// ReadEntry is like [Terminal.ReadEntry]. Ctrl-C does not arrive as a key, so the caller must call
// Interrupt to cancel the entry.
func (l *LineReader) ReadEntry(ctx context.Context, prompt string) (string, error) {
	select {
	case <-l.interrupted: // the interrupt was meant for an earlier entry
	default:
	}
	l.mu.Lock()
	l.prompt = clean(prompt)
	l.mu.Unlock()
	text, ends := "", 0
	l.ask(false)
	defer func() {
		l.mu.Lock()
		l.asked = false
		l.mu.Unlock()
	}()
	for {
		line, err := l.next(ctx)
		text += line
		switch {
		case errors.Is(err, io.EOF) && text != "" && ends == 0:
			ends++ // the first Ctrl-D after some text only delivers that text
			continue
		case errors.Is(err, io.EOF):
			l.print("\n")
			return "", io.EOF
		case err != nil:
			return "", err
		}
		ends = 0
		if !incomplete(strings.TrimSuffix(text, "\n")) {
			return strings.TrimSuffix(text, "\n"), nil
		}
		l.ask(true)
	}
}

func (l *LineReader) next(ctx context.Context) (string, error) {
	r, err := l.reading.next(ctx, l.interrupted, func() readResult {
		text, err := l.in.ReadString('\n')
		return readResult{text, err}
	})
	return r.text, cmp.Or(err, r.err)
}

// A reading is a read from a terminal, which cannot be cancelled, on a goroutine of its own.
type reading[T any] struct{ begun chan T } // nil = no read has begun

// next returns what read returns. If ctx or an interrupt ends it first, the following call gets the result of this read.
func (r *reading[T]) next(ctx context.Context, interrupted <-chan struct{}, read func() T) (got T, err error) {
	if r.begun == nil {
		begun := make(chan T, 1)
		r.begun = begun
		go func() { begun <- read() }()
	}
	select {
	case got = <-r.begun:
		r.begun = nil
	case <-interrupted:
		err = ErrInterrupted
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return got, err
}

// ask prints the prompt, or the continuation prompt for a further line.
func (l *LineReader) ask(further bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
	if further {
		l.print(continuation(len([]rune(l.prompt))))
		return
	}
	l.print(l.prompt)
}

// print ignores errors: if the terminal is gone, they cannot be reported.
func (l *LineReader) print(text string) { fmt.Fprint(l.out, text) }

// Interrupt handles an interrupt signal and reports whether an entry was being read. If so,
// ReadEntry returns [ErrInterrupted]; the operating system has already discarded the line.
func (l *LineReader) Interrupt() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked {
		return false
	}
	l.print("\n")
	select {
	case l.interrupted <- struct{}{}:
	default:
	}
	return true
}

// SetPrompt sets the prompt that is printed next. It does not change a prompt on the screen.
func (l *LineReader) SetPrompt(prompt string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prompt = clean(prompt)
}

// Above calls write, which prints lines. If ReadEntry is waiting, Above then prints the prompt again.
func (l *LineReader) Above(write func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked {
		l.print("\n")
	}
	write()
	if l.asked {
		l.print(l.prompt)
	}
}

// Close does nothing: a LineReader does not change the terminal.
func (l *LineReader) Close() error { return nil }
