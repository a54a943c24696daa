package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"
	"github.com/go-json-experiment/json/jsontext"
)

// Show selects how the human form shows the bytes of values. The zero Show depends on the value:
//
//   - a JSON object or array is indented, with its numbers and its order of names unchanged
//   - text is unchanged, or in quotes if people could misread it: if it has a character that
//     [unicode.IsPrint] rejects, or is a single line that is empty, begins or ends with a space,
//     ends in a newline, or looks like output of sscli; text of several lines may have tabs
//   - everything else is a hex dump
//
// A *Show implements flag.Value.
type Show string

// The nonzero values of Show. ShowText escapes unprintable characters.
// ShowJSON treats a value that is not JSON as the zero Show does.
const (
	ShowText   Show = "text"
	ShowJSON   Show = "json"
	ShowHex    Show = "hex"
	ShowQuoted Show = "quoted"
)

// Shows returns the texts that a flag of type Show accepts.
func Shows() []string {
	return []string{string(ShowText), string(ShowJSON), string(ShowHex), string(ShowQuoted)}
}

// Set sets s to text, which must be one of the texts that Shows returns.
func (s *Show) Set(text string) error {
	if !slices.Contains(Shows(), text) {
		return fmt.Errorf("must be text, json, hex or quoted")
	}
	*s = Show(text)
	return nil
}

// String returns s as text. Set accepts it, unless s is the zero Show.
func (s *Show) String() string { return string(*s) }

// Type returns the name of the flag's value in help.
func (s *Show) Type() string { return "FORM" }

// of returns the form in which to show b. It never returns the zero Show.
func (s Show) of(b []byte) Show {
	switch {
	case s == ShowText, s == ShowHex, s == ShowQuoted:
		return s
	case isJSON(b, s == ShowJSON):
		return ShowJSON
	case isBinary(b):
		return ShowHex
	case needsQuotes(b):
		return ShowQuoted
	}
	return ShowText
}

// isJSON reports whether b is JSON. Unless scalars is true, only an object or an array counts as
// JSON.
func isJSON(b []byte, scalars bool) bool {
	start := bytes.TrimLeft(b, jsonSpace)
	if len(start) == 0 || !scalars && start[0] != '{' && start[0] != '[' {
		return false
	}
	return utf8.Valid(b) && json.Valid(b)
}

// isBinary reports whether b is not text: it is not UTF-8, or has control characters that do
// not occur in text.
func isBinary(b []byte) bool {
	if !utf8.Valid(b) {
		return true
	}
	return slices.ContainsFunc(b, func(c byte) bool {
		return c < ' ' && !('\a' <= c && c <= '\r') && c != '\x1b'
	})
}

// needsQuotes reports whether people would misread a text without quotes.
func needsQuotes(b []byte) bool {
	line, rest, lines := bytes.Cut(b, []byte("\n"))
	if lines && len(rest) > 0 { // in multi-line text, people can see where lines end
		return !isPrintable(b, "\n\t")
	}
	return lines || len(line) == 0 || !isPrintable(line, "") || line[0] == ' ' || line[len(line)-1] == ' ' ||
		// sscli's own output begins or ends like this: quoted text, (nil), and text that was cut.
		line[0] == '"' || line[0] == '(' || bytes.HasSuffix(line, []byte("…"))
}

func isPrintable(b []byte, extra string) bool {
	for i := 0; i < len(b); {
		size, printable := nextRune(b, i)
		if !printable && strings.IndexByte(extra, b[i]) < 0 {
			return false
		}
		i += size
	}
	return true
}

// Size returns a readable number of bytes: 1 byte, 999 bytes, 1.2 MB. The units are powers of 1000.
func Size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1000:
		return strconv.FormatInt(n, 10) + " bytes"
	}
	size, unit := float64(n)/1000, 0
	for ; size >= 999.95 && unit < len(sizeUnits)-1; unit++ {
		size /= 1000
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + " " + sizeUnits[unit:unit+1] + "B"
}

const sizeUnits = "kMGTPE"

// AppendValue appends a value as the human form shows it: one or more lines, each ending
// in a newline. All characters except line ends and tabs are printable. If o.Size is set, AppendValue
// cuts the value so that it takes at most one screen.
func AppendValue(dst, value []byte, show Show, o Options) []byte {
	w := writer{dst, newStyle(o)}
	w.value(value, show)
	return w.out
}

// ValueLine returns a value as one printable line, for a cell of a table: printable text as
// AppendValue shows it, other text escaped or in quotes, JSON without line ends, and other bytes
// as a size and hexadecimal digits.
func ValueLine(value []byte, show Show) string {
	switch show.of(value) {
	case ShowJSON:
		var line []byte
		for l := range jsonLines(value, nil, false) {
			line = l.append(line)
		}
		return string(bytes.TrimSuffix(line, []byte("\n")))
	case ShowHex:
		line := fmt.Appendf(nil, "(%s)", Size(int64(len(value))))
		for _, c := range value {
			line = append(line, ' ', hexDigits[c>>4], hexDigits[c&15])
		}
		return string(line)
	case ShowText:
		if isPrintable(value, "") {
			return string(value)
		}
		if show == ShowText {
			return Escape(value)
		}
	}
	return Quote(value)
}

// ValueStart is like [ValueLine], but for first, the beginning of a value whose length is size. The
// line ends in "…" unless first is the whole value.
func ValueStart(first []byte, size int) string {
	line := ValueLine(first, "")
	if len(first) == size {
		return line
	}
	if Show("").of(first) == ShowHex {
		line = strings.Replace(line, Size(int64(len(first))), Size(int64(size)), 1)
	}
	return line + "…"
}

// narrow is the minimum width, in columns, of a terminal on which JSON is indented.
const narrow = 40

// screenRows is the number of terminal rows that a value leaves free for the command, the version,
// the prompt, and the note that the value was cut.
const screenRows = 4

// value implements AppendValue.
func (w *writer) value(value []byte, show Show) {
	width, height := w.size()
	var lines iter.Seq[line]
	note := ""
	switch show.of(value) {
	case ShowJSON:
		lines = jsonLines(value, &w.style, width == 0 || width >= narrow)
	case ShowHex:
		lines = hexLines(value, w.faint, width)
		note = Size(int64(len(value)))
		if len(value) >= 1000 {
			note += fmt.Sprintf(" (%d bytes)", len(value))
		}
	case ShowText:
		lines = textLines(value, width > 0)
		if i := bytes.IndexByte(value, '\n'); i >= 0 && value[len(value)-1] != '\n' {
			note = "(no newline at the end)"
		}
	default:
		lines = func(yield func(line) bool) { yield(line{{text: Quote(value)}}) }
	}
	isLimited := width > 0 && height > 0
	left := max(height-screenRows, 1)
	for l := range lines {
		rows := l.rows(width)
		if isLimited && rows > left {
			if left > 0 {
				w.out = l.cut(left * width).append(w.out)
			}
			note = "… " + Size(int64(len(value))) + " in all, -o raw for the bytes"
			break
		}
		left -= rows
		w.out = l.append(w.out)
	}
	if note != "" {
		w.print(w.faint.Sprint(note), "\n")
	}
}

// A line is one line of a value, split into printable parts.
type line []part

type part struct {
	text  string
	paint *color.Color // nil = none
}

func (l line) append(dst []byte) []byte {
	for _, p := range l {
		dst = appendPainted(dst, p.paint, p.text)
	}
	return append(dst, '\n')
}

// rows returns the number of rows that the line takes on a terminal of the given width.
func (l line) rows(width int) int {
	if width <= 0 {
		return 1
	}
	columns := 0
	for _, p := range l {
		columns += Columns(p.text)
	}
	return max((columns+width-1)/width, 1)
}

// cut returns as much of the line as fits in the given number of columns.
func (l line) cut(columns int) line {
	for i, p := range l {
		n := Columns(p.text)
		if n > columns {
			return append(slices.Clone(l[:i]), part{Cut(p.text, columns), p.paint})
		}
		columns -= n
	}
	return l
}

// textLines yields the lines of a text, with unprintable characters escaped. On a terminal, it
// replaces tabs with spaces, so that the width of a line is known.
func textLines(b []byte, onTerminal bool) iter.Seq[line] {
	return func(yield func(line) bool) {
		for more := true; more; {
			var l []byte
			if l, b, more = bytes.Cut(b, []byte("\n")); more && len(b) == 0 {
				more = false
			}
			var text []byte
			column := 0
			for i, cell := range bytes.Split(l, []byte("\t")) {
				if i > 0 && onTerminal {
					text = append(text, strings.Repeat(" ", tab-column%tab)...)
					column += tab - column%tab
				} else if i > 0 {
					text = append(text, '\t')
				}
				before := len(text)
				text = appendText(text, string(cell))
				if onTerminal {
					column += Columns(string(text[before:]))
				}
			}
			if !yield(line{{text: string(text)}}) {
				return
			}
		}
	}
}

const tab = 8 // columns from one tab stop to the next

// hexLines yields the lines of a hex dump that fits on a terminal of the given width (0 = no
// terminal). A line has the offset, the bytes in hexadecimal, and the bytes as ASCII, with a dot
// for each unprintable byte.
func hexLines(b []byte, faint *color.Color, width int) iter.Seq[line] {
	n := 16 // bytes in a line, which takes 4n+14 columns
	for n > 4 && width > 0 && 4*n+14 > width {
		n /= 2
	}
	return func(yield func(line) bool) {
		for at := 0; at < len(b); at += n {
			var dump, ascii []byte
			for i := range n {
				if i == 8 {
					dump = append(dump, ' ')
				}
				if at+i >= len(b) {
					dump = append(dump, "   "...)
					continue
				}
				c := b[at+i]
				dump = append(dump, hexDigits[c>>4], hexDigits[c&15], ' ')
				if c < ' ' || c > '~' {
					c = '.'
				}
				ascii = append(ascii, c)
			}
			if !yield(line{
				{fmt.Sprintf("%08x  ", at), faint},
				{text: string(dump)},
				{" |" + string(ascii) + "|", faint},
			}) {
				return
			}
		}
	}
}

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
