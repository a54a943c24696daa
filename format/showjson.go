package format

import (
	"bytes"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const jsonSpace = " \t\r\n"

// maxIndent is the maximum indentation in columns. It bounds the output for deeply nested JSON.
const maxIndent = 60

// jsonLines yields b, which must be valid JSON in UTF-8, as lines: one for each member or element
// if indented is true, otherwise a single line. Names and values are unchanged, except that
// unprintable characters in strings are escaped. s has the colors; nil means no colors.
func jsonLines(b []byte, s *style, indented bool) iter.Seq[line] {
	if s == nil {
		s = &style{}
	}
	return func(yield func(line) bool) {
		d := jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		var l line
		for kind := d.PeekKind(); kind != jsontext.KindInvalid; kind = d.PeekKind() {
			depth := d.StackDepth()
			within, n := d.StackIndex(depth) // n is the number of names and values before this token
			isName, isEnd := within == '{' && n%2 == 0, kind == '}' || kind == ']'
			isEmpty := isEnd && n == 0 // nothing is between the brackets
			switch {
			case within == '{' && !isName:
				l = append(l, part{text: ": "})
			case n > 0 && !isEnd && indented:
				l = append(l, part{text: ","})
			case n > 0 && !isEnd:
				l = append(l, part{text: ", "})
			}
			if isEnd {
				depth--
			}
			if indented && !isEmpty && (isName || within == '[') {
				if !yield(l) {
					return
				}
				l = line{{text: strings.Repeat("  ", min(depth, maxIndent/2))}}
			}
			l = append(l, jsonPart(d, kind, isName, s))
		}
		yield(l)
	}
}

// jsonPart reads the next token, which is of this kind.
func jsonPart(d *jsontext.Decoder, kind jsontext.Kind, isName bool, s *style) part {
	paint := s.other
	switch {
	case strings.ContainsRune("{}[]", rune(kind)):
		_, _ = d.ReadToken() // the JSON is valid
		return part{text: string(kind)}
	case isName:
		paint = s.name
	case kind == '"':
		paint = s.text
	}
	text, _ := d.ReadValue() // the JSON is valid
	return part{escapeInJSON(string(text)), paint}
}

// escapeInJSON escapes the unprintable characters of a JSON string.
func escapeInJSON(s string) string { return string(appendEscaped(nil, s, "", appendJSONEscape)) }
