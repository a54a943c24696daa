package repl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sscli/sscli/format"
)

// ErrIncomplete says that a quote is open: the line goes on in the next one.
var ErrIncomplete = errors.New("the quote is not closed")

// A Word is one word of a line.
type Word struct {
	Text string
	// Quoted tells whether any part of it was quoted. A quoted "-" is a minus,
	// and not standard input.
	Quoted bool
}

// Split splits one line into words. The line may have its line end, and line
// ends within quotes. An error about a quote that is still open is an
// [ErrIncomplete].
func Split(line string) ([]Word, error) {
	var s splitter
	for rest := line; ; {
		physical, after, more := strings.Cut(rest, "\n")
		if more {
			physical += "\n"
		}
		s.line(physical)
		if after == "" {
			break
		}
		if s.quote == 0 {
			return nil, fmt.Errorf("byte %d: want the end of the line outside of quotes, got another line", len(line)-len(after))
		}
		rest = after
	}
	return s.finish()
}

// A splitter takes a logical line by its physical ones, each byte once, so that
// a value of many lines in quotes costs no more than its length.
type splitter struct {
	words  []Word
	word   []byte // the one that is being read
	open   bool   // a word is being read
	quoted bool   // a part of it was quoted
	quote  byte   // the quote that is open, or 0
	part   int    // where in word the open quote is
	escape bool   // the last byte was a backslash in double quotes
	pos    int    // bytes read before this physical line
	at     int    // where in the logical line the open quote is
	err    error  // the first one; reading goes on to find the line's end
}

func (s *splitter) line(line string) {
	body, newline := strings.CutSuffix(line, "\n")
	cr := false
	if newline {
		body, cr = strings.CutSuffix(body, "\r")
	}
	for i := 0; i < len(body); i++ {
		if !s.open && body[i] == '#' {
			break
		}
		s.byte(body[i], s.pos+i)
	}
	switch {
	case s.quote == 0:
		s.endWord()
	case cr:
		s.byte('\r', s.pos+len(body))
		fallthrough
	case newline:
		s.byte('\n', s.pos+len(line)-1)
	}
	s.pos += len(line)
}

func (s *splitter) byte(c byte, at int) {
	switch {
	case s.quote == '"':
		s.word = append(s.word, c)
		switch {
		case s.escape:
			s.escape = false
		case c == '\\':
			s.escape = true
		case c == '"':
			s.unquote()
		}
	case s.quote != 0 && c == s.quote:
		s.quote = 0
	case s.quote != 0:
		s.word = append(s.word, c)
	case c == ' ' || c == '\t':
		s.endWord()
	case c == '"' || c == '\'':
		s.open, s.quoted = true, true
		s.quote, s.part, s.at = c, len(s.word), at
		if c == '"' {
			s.word = append(s.word, c)
		}
	default:
		s.open = true
		s.word = append(s.word, c)
	}
}

// unquote puts the bytes that the part in double quotes stands for in its place.
func (s *splitter) unquote() {
	text, err := format.Unquote(string(s.word[s.part:]))
	if syntax, ok := errors.AsType[*format.SyntaxError](err); ok {
		syntax.Offset += s.at
	}
	if s.err == nil {
		s.err = err
	}
	s.word = append(s.word[:s.part], text...)
	s.quote = 0
}

func (s *splitter) endWord() {
	if s.open {
		s.words = append(s.words, Word{Text: string(s.word), Quoted: s.quoted})
	}
	s.word, s.open, s.quoted = s.word[:0], false, false
}

// finish prefers ErrIncomplete to an error before it: the shell has to read the
// whole line before it can say what is wrong, or else would take the rest for
// commands.
func (s *splitter) finish() ([]Word, error) {
	if s.quote != 0 {
		return nil, fmt.Errorf("byte %d: %w", s.at, ErrIncomplete)
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.words, nil
}
