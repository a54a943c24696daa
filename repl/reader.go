package repl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Line is a logical line: one physical line, or several joined by an open quote.
type Line struct {
	Number int    // of its first physical line, counted from 1
	Text   string // without its line end
	Words  []Word
}

// A LineError is an error in one line.
type LineError struct {
	Number int // of its first physical line, or of the one with the unclosed quote
	Err    error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Number, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// ErrTooLong means that a line is longer than [Reader.MaxBytes].
var ErrTooLong = errors.New("the line is too long; is a quote left open?")

// A Reader reads logical lines from a stream. It returns each as soon as its line end
// arrives, and keeps only one in memory. Lines may end in CR LF; within quotes the CR is
// kept.
type Reader struct {
	MaxBytes int // limit of a logical line; NewReader sets it to 64 MiB

	in     *bufio.Reader
	unread string // what was read and is not yet a line
	number int    // of physical lines read
	err    error  // why reading has ended
	words  []Word // memory for the words of the next lines
}

// readSize is how many bytes a Reader reads at a time. The lines of one read share one piece of
// memory.
const readSize = 32 << 10

// NewReader returns a Reader that reads from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{MaxBytes: 64 << 20, in: bufio.NewReaderSize(r, readSize)}
}

// Next returns the next line that has words, and io.EOF after the last.
//
// If the error is a *[LineError], the Line has its number and, unless it is too long,
// its text. The next call continues with the following line, except after a line that is
// too long: what follows could be the rest of a value, so nothing more is read. Any
// other error is the stream's, and the incomplete line before it is not returned.
func (r *Reader) Next() (Line, error) {
	for {
		line, err := r.logical()
		if err != nil || len(line.Words) > 0 {
			return line, err
		}
	}
}

// NextText is like Next for lines of another grammar: it returns the next physical line
// that is not blank, without splitting it into words.
func (r *Reader) NextText() (Line, error) {
	for {
		line := Line{Number: r.number + 1}
		text, err := r.physical(0)
		if err == ErrTooLong {
			return line, &LineError{line.Number, err}
		}
		if err != nil {
			return Line{}, err
		}
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		if strings.TrimSpace(text) != "" {
			line.Text = text
			return line, nil
		}
	}
}

// Lines returns the number of physical lines read so far.
func (r *Reader) Lines() int { return r.number }

// logical reads a logical line, which may have no words.
func (r *Reader) logical() (Line, error) {
	if cap(r.words) < commonWords && r.number > 0 {
		r.words = make([]Word, 0, 256) // for many lines, as there are more than one
	}
	s := splitter{words: r.words[:0]}
	line := Line{Number: r.number + 1}
	var before []byte // the physical lines of it before the last one
	for {
		text, err := r.physical(len(before))
		switch {
		case err == io.EOF && s.quote != 0:
			line.Text = string(before)
			opened := line.Number + bytes.Count(before[:s.at], []byte("\n"))
			return line, &LineError{opened, ErrIncomplete}
		case err == ErrTooLong:
			return line, &LineError{line.Number, err}
		case err != nil:
			return Line{}, err
		}
		s.line(text)
		if s.quote == 0 {
			if line.Text = text; before != nil {
				line.Text = string(append(before, text...))
			}
			break
		}
		before = append(before, text...)
	}
	if text, ok := strings.CutSuffix(line.Text, "\n"); ok {
		line.Text = strings.TrimSuffix(text, "\r")
	}
	words, err := s.finish()
	if err != nil {
		return line, &LineError{line.Number, err}
	}
	if len(words) > 0 {
		line.Words = slices.Clip(words)
		r.words = words[len(words):]
	}
	return line, nil
}

// physical returns the next physical line, with its line end. The last line of a stream needs
// no line end. before is the number of bytes that the logical line has already.
func (r *Reader) physical(before int) (string, error) {
	var begun []byte // the beginning of a line that needs several reads
	for {
		part, rest, whole := strings.Cut(r.unread, "\n")
		if whole {
			part = r.unread[:len(part)+1]
		}
		r.unread = rest
		switch {
		case before+len(begun)+len(part) > r.MaxBytes:
			r.unread, r.err = "", io.EOF
			return "", ErrTooLong
		case whole && begun == nil:
			r.number++
			return part, nil
		}
		begun = append(begun, part...)
		switch {
		case whole, r.err == io.EOF && len(begun) > 0:
			r.number++
			return string(begun), nil
		case r.err != nil:
			return "", r.err
		}
		r.read()
	}
}

// read reads what there is.
func (r *Reader) read() {
	_, r.err = r.in.Peek(1)
	read, _ := r.in.Peek(r.in.Buffered()) // all of it is buffered
	r.unread = string(read)
	_, _ = r.in.Discard(len(read))
}
