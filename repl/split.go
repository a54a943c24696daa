package repl

import (
	"cmp"
	"encoding/json"
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
	Text   string
	Quoted bool // the word was in quotes: a quoted "-" is a minus, not standard input
}

// A QuoteError is a word that is not in quotes but contains one, or that goes on after its closing
// quote. Such a word is refused because shells disagree about it: sh would remove the quotes of
// {"a":1}, and would continue it's on the next line.
type QuoteError struct {
	Offset int  // of the quote, or of the byte after the closing quote, in the logical line
	Closed bool // the word goes on after its closing quote

	Word string // the word as it should be written; empty if it is not clear what is meant
	Line string // the whole line as it should be written; empty if Word is, or if the line has other errors
}

func (e *QuoteError) Error() string {
	text := fmt.Sprintf("byte %d: a quote inside a word", e.Offset)
	if e.Closed {
		text = fmt.Sprintf("byte %d: expected a space after the closing quote", e.Offset)
	}
	if e.Word != "" && len(e.Word) <= maxQuoted {
		text += "; to quote the whole word, write " + e.Word
	}
	return text
}

// maxQuoted is the maximum length, in bytes, of a word that the message of a QuoteError repeats.
const maxQuoted = 120

func isQuote(c byte) bool { return c == '"' || c == '\'' }

// advise adds to a QuoteError how its word and its line should be written. It returns err.
func advise(err error, line string) error {
	bad, ok := errors.AsType[*QuoteError](err)
	if !ok {
		return err
	}
	if word, whole := requote(line); word != "" {
		bad.Word = word
		if _, err := Split(whole); err == nil {
			bad.Line = whole
		}
	}
	return err
}

// requote returns the first word of a line that has a quote in the wrong place, in quotes, and the line
// with all such words in quotes. word is empty if there is none.
func requote(line string) (word, whole string) {
	var fixed strings.Builder
	for rest := strings.TrimRight(line, "\r\n"); ; {
		blanks := len(rest) - len(strings.TrimLeft(rest, " \t"))
		fixed.WriteString(rest[:blanks])
		rest = rest[blanks:]
		if rest == "" || rest[0] == '#' {
			fixed.WriteString(rest)
			return word, fixed.String()
		}
		text, size := meant(rest)
		if text == "" {
			fixed.WriteString(rest[:size])
		} else {
			text = quoted(text)
			fixed.WriteString(text)
			word = cmp.Or(word, text)
		}
		rest = rest[size:]
	}
}

// meant returns the text that the first word of a line most likely stands for, if the word has a quote in
// the wrong place, and the length of the word in the line. Otherwise text is empty.
func meant(line string) (text string, size int) {
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		end = len(line)
	}
	sh, shEnd := shWord(line)
	switch all := strings.TrimRight(line, " \t"); {
	case isQuote(line[0]):
		if n := quotedSize(line); n > 0 && (n == len(line) || isBlank(line[n])) {
			return "", n
		}
	case !strings.ContainsAny(line[:end], `"'`):
		return "", end
	case (line[0] == '{' || line[0] == '[') && json.Valid([]byte(all)):
		return all, len(all)
	case line[0] != '-':
		return line[:end], end
	}
	if shEnd > 0 && sh != "" { // as in --flag="two words", and in "a"'b'
		return sh, shEnd
	}
	return line[:end], end
}

// quotedSize returns the length of the quoted text with which a line begins, or 0 if the quote is not
// closed.
func quotedSize(line string) int {
	for i := 1; i < len(line); i++ {
		switch {
		case line[0] == '"' && line[i] == '\\':
			i++
		case line[i] == line[0]:
			return i + 1
		}
	}
	return 0
}

// shWord returns the first word of a line as sh(1) would read it, and its length in the line, or 0 if a
// quote is open at the end.
func shWord(line string) (text string, size int) {
	var quote byte
	var word []byte
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote == '"' && c == '\\' && i+1 < len(line):
			i++
			word = append(word, line[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word = append(word, c)
		case isQuote(c):
			quote = c
		case isBlank(c):
			return string(word), i
		default:
			word = append(word, c)
		}
	}
	if quote != 0 {
		return "", 0
	}
	return string(word), len(line)
}

// quoted returns text in quotes, in single quotes if that is possible.
func quoted(text string) string {
	if strings.Contains(text, "'") || format.Escape(text) != strings.ReplaceAll(text, `\`, `\\`) {
		return format.Quote(text)
	}
	return "'" + text + "'"
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
	words, err := s.finish()
	return words, advise(err, line)
}

// A splitter splits a logical line, one physical line at a time. It reads each byte once,
// so a quoted value of many lines takes linear time.
type splitter struct {
	words  []Word
	word   []byte // the current word
	open   bool   // a word has begun and not ended
	quoted bool   // the current word began with a quote
	quote  byte   // the quote that is open, or 0
	escape bool   // the last byte was a backslash in double quotes
	pos    int    // offset of the current physical line in the logical line
	at     int    // offset of the open quote in the logical line
	err    error  // the first error; later bytes are still processed
}

// line processes the next physical line, with its line end.
func (s *splitter) line(line string) {
	body, newline := strings.CutSuffix(line, "\n")
	body, cr := strings.CutSuffix(body, "\r") // a line end too if it is the last byte of the input
	if s.quote == 0 && strings.IndexByte(body, '"') < 0 && strings.IndexByte(body, '\'') < 0 && strings.IndexByte(body, '\t') < 0 {
		s.simple(body)
		s.pos += len(line)
		return
	}
	s.word = slices.Grow(s.word, len(line))
	for i := 0; i < len(body) && (s.open || body[i] != '#'); i++ {
		s.byte(body[i], s.pos+i)
	}
	if s.quote == 0 {
		s.endWord()
	}
	if s.quote != 0 && cr {
		s.byte('\r', s.pos+len(body))
	}
	if s.quote != 0 && newline {
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
	case !s.open && isQuote(c):
		s.open, s.quoted = true, true
		s.quote, s.at = c, at
		if c == '"' {
			s.word = append(s.word, c)
		}
	default:
		if s.err == nil && (s.quoted || isQuote(c)) {
			s.err = &QuoteError{Offset: at, Closed: s.quoted}
		}
		s.open = true
		s.word = append(s.word, c)
	}
}

// unquote decodes s.word, which is in double quotes.
func (s *splitter) unquote() {
	text, err := format.Unquote(string(s.word))
	if syntax, ok := errors.AsType[*format.SyntaxError](err); ok {
		syntax.Offset += s.at
	}
	if s.err == nil {
		s.err = err
	}
	s.word = append(s.word[:0], text...)
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
