package repl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/format"
)

// ErrIncomplete means that a quote is open, so the logical line continues on the next physical line.
var ErrIncomplete = errors.New("the quote is not closed")

// A Word is one word of a line.
type Word struct {
	Text string
	// Quoted reports whether any part of the word was quoted. A quoted "-" is a minus,
	// not standard input.
	Quoted bool
}

// Texts returns the texts of words.
func Texts(words []Word) []string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return texts
}

// Split splits a logical line into words. The line may contain newlines within quotes, and
// may end with a newline. If a quote is not closed, the error wraps [ErrIncomplete].
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
			return nil, fmt.Errorf("byte %d: expected the end of the line outside of quotes, got another line", len(line)-len(after))
		}
		rest = after
	}
	return s.finish()
}

// A splitter splits a logical line, one physical line at a time. It reads each byte once,
// so a quoted value of many lines takes linear time.
type splitter struct {
	words  []Word
	word   []byte // the current word
	open   bool   // a word has begun and not ended
	quoted bool   // a part of the current word was quoted
	quote  byte   // the quote that is open, or 0
	part   int    // offset of the open quote in word
	escape bool   // the last byte was a backslash in double quotes
	pos    int    // offset of the current physical line in the logical line
	at     int    // offset of the open quote in the logical line
	err    error  // the first error; later bytes are still processed
}

// line processes the next physical line, with its line end.
func (s *splitter) line(line string) {
	body, newline := strings.CutSuffix(line, "\n")
	cr := false
	if newline {
		body, cr = strings.CutSuffix(body, "\r")
	}
	if s.quote == 0 && strings.IndexByte(body, '"') < 0 && strings.IndexByte(body, '\'') < 0 && strings.IndexByte(body, '\t') < 0 {
		s.simple(body)
		s.pos += len(line)
		return
	}
	s.word = slices.Grow(s.word, len(line))
	for i := 0; i < len(body) && (s.open || body[i] != '#'); i++ {
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

// simple splits a line that has no quotes or tabs. The words share the memory of the line.
func (s *splitter) simple(line string) {
	for line != "" && line[0] != '#' {
		var word string
		if word, line, _ = strings.Cut(line, " "); word != "" {
			s.words = append(s.words, Word{Text: word})
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// byte processes c, the byte of the logical line at offset at.
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
	case isBlank(c):
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

// unquote decodes the double-quoted part whose closing quote is the last byte of s.word.
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

// finish returns the words. ErrIncomplete takes precedence over an earlier error: the shell must
// read the rest of the entry before it reports an error. Otherwise, it would run the rest as
// commands.
func (s *splitter) finish() ([]Word, error) {
	if s.quote != 0 {
		return nil, fmt.Errorf("byte %d: %w", s.at, ErrIncomplete)
	}
	if s.err != nil {
		return nil, s.err
	}
	for _, w := range s.words {
		if isOperator(w) {
			return nil, fmt.Errorf("%.32q: a line is one command, without pipes or redirections; quote it if it is a word", w.Text)
		}
	}
	return s.words, nil
}

// isOperator reports whether a word is an operator of sh, or ends in a semicolon. Such a word
// must not be taken for an operand: del a ; get b would delete b.
func isOperator(w Word) bool {
	if w.Quoted || w.Text == "" {
		return false
	}
	switch w.Text[len(w.Text)-1] {
	case ';':
		return true
	case '|', '&', '<', '>':
		return len(w.Text) == 1 || len(w.Text) == 2 && w.Text[0] == w.Text[1]
	}
	return false
}
