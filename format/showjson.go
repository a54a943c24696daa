package format

import (
	"iter"
	"slices"
	"strings"

	"github.com/fatih/color"
)

const jsonSpace = " \t\r\n"

// jsonLines yields b, which must be valid JSON in UTF-8, as lines. If indented is true, each member or
// element begins a new line; otherwise there is a single line. Names and values are unchanged, except
// that unprintable characters in strings are escaped. s holds the colors; nil = no colors.
func jsonLines(b []byte, s *style, indented bool) iter.Seq[line] {
	return func(yield func(line) bool) {
		w := jsonWriter{indented: indented}
		if s != nil {
			w.name, w.text, w.other = s.name, s.text, s.other
		}
		for w.rest = string(b); w.next(); {
			if w.whole != nil && !yield(w.whole) {
				return
			}
			w.whole = nil
		}
		yield(w.line)
	}
}

// A jsonWriter converts JSON to lines, token by token.
type jsonWriter struct {
	rest              string // the JSON that has not been read yet
	indented          bool
	name, text, other *color.Color

	open    []byte // the open brackets, outermost first
	isValue bool   // in an object: a value comes next, not a name
	line    line
	whole   line // the line that the last token completed; nil = none
}

// next converts the next token and reports whether there was one.
func (w *jsonWriter) next() bool {
	w.rest = strings.TrimLeft(w.rest, jsonSpace)
	if w.rest == "" {
		return false
	}
	switch c := w.rest[0]; c {
	case '{', '[':
		inside := strings.TrimLeft(w.rest[1:], jsonSpace)
		if inside[0] == c+2 { // in ASCII, } is '{'+2 and ] is '['+2
			w.put(nil, w.rest[:1]+inside[:1])
			w.rest = inside[1:]
			break
		}
		w.open = append(w.open, c)
		w.token(1, nil)
		w.isValue = false
		w.end("")
	case '}', ']':
		w.open = w.open[:len(w.open)-1]
		w.end("")
		w.token(1, nil)
	case ',':
		w.token(1, nil)
		w.isValue = false
		w.end(" ")
	case ':':
		w.token(1, nil)
		w.put(nil, " ")
		w.isValue = true
	case '"':
		n := 1 + closingQuote(w.rest[1:])
		paint := w.text
		if !w.isValue && len(w.open) > 0 && w.open[len(w.open)-1] == '{' {
			paint = w.name
		}
		w.put(paint, escapeInJSON(w.rest[:n]))
		w.rest = w.rest[n:]
	default:
		n := strings.IndexAny(w.rest, ",]}"+jsonSpace)
		if n < 0 {
			n = len(w.rest)
		}
		w.token(n, w.other)
	}
	return true
}

// token moves the first n bytes of w.rest to the line, unchanged.
func (w *jsonWriter) token(n int, paint *color.Color) {
	w.put(paint, w.rest[:n])
	w.rest = w.rest[n:]
}

func (w *jsonWriter) put(paint *color.Color, text string) {
	w.line = append(w.line, part{text, paint})
}

// maxIndent is the maximum indentation in columns. It bounds the output for deeply nested JSON.
const maxIndent = 60

// end completes the line and begins the next one with its indentation. If the output is not indented,
// end only appends the text between.
func (w *jsonWriter) end(between string) {
	if !w.indented {
		if between != "" {
			w.put(nil, between)
		}
		return
	}
	w.whole = slices.Clone(w.line)
	w.line = w.line[:0]
	w.put(nil, strings.Repeat("  ", min(len(w.open), maxIndent/2)))
}

// closingQuote returns the length of s up to and including the quote that closes a JSON string.
// s begins after the opening quote.
func closingQuote(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// escapeInJSON escapes the unprintable characters of a JSON string.
func escapeInJSON(s string) string { return string(appendEscaped(nil, s, "", appendJSONEscape)) }
