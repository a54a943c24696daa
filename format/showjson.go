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

// jsonLines yields b, which must be valid JSON in UTF-8, as lines. If indented is true, each member or
// element begins a new line; otherwise there is a single line. Names and values are unchanged, except
// that unprintable characters in strings are escaped. s holds the colors; nil = no colors. A line is valid
// until the next one.
func jsonLines(b []byte, s *style, indented bool) iter.Seq[line] {
	if s == nil {
		s = &style{}
	}
	return func(yield func(line) bool) {
		d := jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		var l line
		for {
			start, depth := d.InputOffset(), d.StackDepth()
			within, n := d.StackIndex(depth) // n = the number of names and values before the token, in its brackets
			token, err := d.ReadToken()
			if err != nil { // the end of b
				break
			}
			kind := token.Kind()
			isEnd := kind == '}' || kind == ']'
			isMemberValue := within == '{' && n%2 == 1
			text := string(bytes.TrimLeft(b[start:d.InputOffset()], jsonSpace+",:"))
			switch {
			case isEnd && n == 0: // {} and [] are one part
				l[len(l)-1].text += text
				continue
			case isMemberValue:
				l = append(l, part{text: ":"}, part{text: " "})
			case n > 0 && !isEnd && indented:
				l = append(l, part{text: ","})
			case n > 0 && !isEnd:
				l = append(l, part{text: ","}, part{text: " "})
			}
			if indented && depth > 0 && !isMemberValue { // the token begins a line
				if !yield(l) {
					return
				}
				if isEnd {
					depth--
				}
				l = append(l[:0], part{text: strings.Repeat("  ", min(depth, maxIndent/2))})
			}
			switch {
			case strings.ContainsRune("{}[]", rune(kind)):
				l = append(l, part{text: text})
			case kind != '"':
				l = append(l, part{text, s.other})
			case within == '{' && !isMemberValue:
				l = append(l, part{escapeInJSON(text), s.name})
			default:
				l = append(l, part{escapeInJSON(text), s.text})
			}
		}
		yield(l)
	}
}

func escapeInJSON(s string) string { return string(appendEscaped(nil, s, "", appendJSONEscape)) }
