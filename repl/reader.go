package repl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Line is a logical line: one physical line or, if [Reader.Joins] is set, several joined by an open
// quote.
type Line struct {
	Number int    // number of its first physical line, from 1
	Text   string // without its line end
	Words  []Word
}

// A LineError is an error in one line of the input.
type LineError struct {
	Number int // number of the logical line's first physical line or, for ErrIncomplete, of the line with the open quote
	Err    error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Number, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// ErrTooLong means that a line is too long: a logical line of words above 64 MiB, a line of JSON above
// 1.5 GiB, which is room for the largest MQTT packet with each byte written as \u0000.
var ErrTooLong = errors.New("the line is too long")

// A Reader reads logical lines from a stream. It returns each line as soon as its line end
// arrives, and keeps only one line in memory. Lines may end in CR LF.
type Reader struct {
	// Joins reports whether an open quote continues on the next physical line, as in the shell. A CR
	// before a line end within quotes is then part of the word. Without Joins, an open quote is an
	// error of its line alone.
	Joins bool

	in       *bufio.Reader
	maxBytes int  // maximum length of a logical line
	maxText  int  // maximum length of a line that NextText returns
	number   int  // number of physical lines read
	ended    bool // a joined line was too long, so nothing more is read
}

const readSize = 32 << 10

// NewReader returns a Reader that reads from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{maxBytes: 64 << 20, maxText: 1536 << 20, in: bufio.NewReaderSize(r, readSize)}
}

// Next returns the next line that has words, and io.EOF after the last.
//
// If the error is a *[LineError], the fields Number and Text of the Line are set, and the next
// call continues with the following line. After [ErrTooLong], Text is empty; if lines are joined,
// the next call returns io.EOF, because the following bytes could be the rest of a value. Any other
// error comes from the stream, and the incomplete line before it is lost.
func (r *Reader) Next() (Line, error) {
	for {
		line, err := r.logical()
		if err != nil || len(line.Words) > 0 {
			return line, err
		}
	}
}

// NextText returns the next physical line that is not blank, without splitting it into words. It
// returns errors as Next does, but its only *[LineError] is [ErrTooLong].
func (r *Reader) NextText() (Line, error) {
	for {
		line := Line{Number: r.number + 1}
		text, err := r.physical(r.maxText)
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

// Lines returns the number of physical lines that have been read.
func (r *Reader) Lines() int { return r.number }

// logical reads a logical line, which may have no words.
func (r *Reader) logical() (Line, error) {
	s := splitter{words: make([]Word, 0, 4)} // enough for most commands, such as SET KEY VALUE NX
	line := Line{Number: r.number + 1}
	var before []byte // earlier physical lines of the logical line
	for {
		text, err := r.physical(r.maxBytes - len(before))
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
		if s.quote == 0 || !r.Joins {
			if line.Text = text; before != nil {
				line.Text = string(append(before, text...))
			}
			break
		}
		before = append(before, text...)
	}
	line.Text = strings.TrimSuffix(strings.TrimSuffix(line.Text, "\n"), "\r") // as splitter.line does
	var err error
	if line.Words, err = s.finish(); err != nil {
		return line, &LineError{line.Number, advise(err, line.Text)}
	}
	return line, nil
}

// physical returns the next physical line, with its line end. The last line of a stream may
// lack a line end. most is its maximum length in bytes.
func (r *Reader) physical(most int) (string, error) {
	if r.ended {
		return "", io.EOF
	}
	var begun []byte // the beginning of a line that is longer than the buffer
	for {
		part, err := r.in.ReadSlice('\n')
		if len(begun)+len(part) > most {
			return "", r.skip(err)
		}
		if err == nil && begun == nil {
			r.number++
			return string(part), nil
		}
		begun = append(begun, part...)
		switch {
		case err == nil, err == io.EOF && len(begun) > 0:
			r.number++
			return string(begun), nil
		case err != bufio.ErrBufferFull:
			return "", err
		}
	}
}

// skip reads the rest of a physical line that is too long. err is the error of the last read. If lines
// are joined, skip ends the reading instead. It returns ErrTooLong.
func (r *Reader) skip(err error) error {
	r.number++
	for r.ended = r.Joins; !r.ended && err == bufio.ErrBufferFull; {
		_, err = r.in.ReadSlice('\n')
	}
	return ErrTooLong // a read error occurs again in the next call
}
