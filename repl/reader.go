package repl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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
	number int    // of physical lines read
	text   []byte // the logical line so far
	err    error  // why reading has ended
}

// NewReader returns a Reader that reads from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{MaxBytes: 64 << 20, in: bufio.NewReader(r)}
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
		r.text = r.text[:0]
		line := Line{Number: r.number + 1}
		err := r.physical()
		if err == ErrTooLong {
			r.err = io.EOF
			return line, &LineError{line.Number, err}
		}
		if err != nil {
			return Line{}, err
		}
		text := bytes.TrimSuffix(bytes.TrimSuffix(r.text, []byte("\n")), []byte("\r"))
		if len(bytes.TrimSpace(text)) > 0 {
			line.Text = string(text)
			return line, nil
		}
	}
}

// Lines returns the number of physical lines read so far.
func (r *Reader) Lines() int { return r.number }

// logical reads a logical line, which may have no words.
func (r *Reader) logical() (Line, error) {
	var s splitter
	r.text = r.text[:0]
	line := Line{Number: r.number + 1}
	for {
		start := len(r.text)
		err := r.physical()
		switch {
		case err == io.EOF && s.quote != 0:
			line.Text = string(r.text)
			opened := line.Number + bytes.Count(r.text[:s.at], []byte("\n"))
			return line, &LineError{opened, ErrIncomplete}
		case err == ErrTooLong:
			r.err = io.EOF
			return line, &LineError{line.Number, err}
		case err != nil:
			return Line{}, err
		}
		line.Text = string(r.text[start:])
		s.line(line.Text)
		if s.quote == 0 {
			if start > 0 {
				line.Text = string(r.text)
			}
			break
		}
	}
	if text, ok := strings.CutSuffix(line.Text, "\n"); ok {
		line.Text = strings.TrimSuffix(text, "\r")
	}
	words, err := s.finish()
	if err != nil {
		return line, &LineError{line.Number, err}
	}
	line.Words = words
	return line, nil
}

// physical appends the next physical line to r.text. The last line of a stream needs no
// line end.
func (r *Reader) physical() error {
	start := len(r.text)
	for r.err == nil {
		chunk, err := r.in.ReadSlice('\n')
		if len(r.text)+len(chunk) > r.MaxBytes {
			return ErrTooLong
		}
		r.text = append(r.text, chunk...)
		if err == nil {
			r.number++
			return nil
		}
		if err != bufio.ErrBufferFull {
			r.err = err
		}
	}
	if r.err == io.EOF && len(r.text) > start {
		r.number++
		return nil
	}
	return r.err
}
