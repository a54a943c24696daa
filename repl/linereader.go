package repl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// A LineReader reads entries from a terminal that can do nothing but print: without
// an escape sequence, and with what editing the system itself has to offer.
type LineReader struct {
	in  *bufio.Reader
	out io.Writer

	read        chan physical // of the line that is being read, if one is
	reading     bool
	interrupted chan struct{} // capacity 1

	mu     sync.Mutex
	prompt string
	asked  bool // the prompt stands there
}

type physical struct {
	text string
	err  error
}

// NewLineReader returns one that reads lines and prints prompts.
func NewLineReader(in io.Reader, out io.Writer) *LineReader {
	return &LineReader{in: bufio.NewReader(in), out: out, read: make(chan physical, 1), interrupted: make(chan struct{}, 1)}
}

// ReadEntry is as [Terminal.ReadEntry], where Interrupt is Ctrl-C.
func (l *LineReader) ReadEntry(ctx context.Context, prompt string) (string, error) {
	select {
	case <-l.interrupted: // before there was anything to drop
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
			ends++ // Ctrl-D within a line only says that it is to be read already
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

// next reads a line; nothing can end a read from a terminal, so the goroutine that
// does lasts until there is a line, which the next call gets, or to the end of the
// process.
func (l *LineReader) next(ctx context.Context) (string, error) {
	if !l.reading {
		l.reading = true
		go func() {
			text, err := l.in.ReadString('\n')
			l.read <- physical{text, err}
		}()
	}
	select {
	case p := <-l.read:
		l.reading = false
		return p.text, p.err
	case <-l.interrupted:
		return "", ErrInterrupted
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

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

// print is for a terminal: if it is gone there is nobody to tell.
func (l *LineReader) print(text string) { fmt.Fprint(l.out, text) }

// Interrupt is told of the signal, and tells whether it was for the line: then what was
// typed is dropped, as the system has dropped its part.
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

// SetPrompt changes the prompt of the next line.
func (l *LineReader) SetPrompt(prompt string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prompt = clean(prompt)
}

// Above runs something that prints lines, and prints the prompt again if one stands
// there.
func (l *LineReader) Above(print func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked {
		l.print("\n")
	}
	print()
	if l.asked {
		l.print(l.prompt)
	}
}

// Close does nothing: the terminal is as it was.
func (l *LineReader) Close() error { return nil }
