package format

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bytes is the constraint for text that can be escaped: keys are strings, values are byte slices.
type Bytes interface{ ~string | ~[]byte }

// Escape returns b with C escapes: \n \r \t \\, and \xHH for each byte that is not part of
// a printable character. It thus escapes control characters, bidirectional overrides, zero-width
// characters and invalid UTF-8, all of which can make a terminal show something other than what
// is stored. Spaces and quotes are not escaped. [Unescape] is the inverse.
func Escape[T Bytes](b T) string { return string(AppendEscape(nil, b)) }

// AppendEscape appends b to dst, escaped as by [Escape].
func AppendEscape[T Bytes](dst []byte, b T) []byte { return appendEscaped(dst, b, `\`, appendEscape) }

// Quote is like [Escape], but puts the text in double quotes and escapes the double quotes in the
// text. [Unquote] is the inverse.
func Quote[T Bytes](b T) string { return string(AppendQuote(nil, b)) }

// AppendQuote appends b to dst, quoted as by [Quote].
func AppendQuote[T Bytes](dst []byte, b T) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, b, `"\`, appendEscape)
	return append(dst, '"')
}

// appendText appends a message, escaped. It leaves backslashes as they are, because quoted names in
// the message are already escaped.
func appendText(dst []byte, text string) []byte { return appendEscaped(dst, text, "", appendEscape) }

func printable(text string) string { return string(appendText(nil, text)) }

const hexDigits = "0123456789abcdef"

// appendEscaped appends b. It puts a backslash before each character in special, and calls escape
// to append each unprintable character. special has at most two characters.
func appendEscaped[T Bytes](dst []byte, b T, special string, escape func(dst []byte, char string) []byte) []byte {
	for i := 0; i < len(b); {
		begin := i
		for i < len(b) && isPlain(b[i], special) {
			i++
		}
		if dst = append(dst, b[begin:i]...); i == len(b) {
			break
		}
		size, printable := nextRune(b, i)
		switch {
		case !printable:
			dst = escape(dst, string(b[i:i+size]))
		case size == 1:
			dst = append(dst, '\\', b[i])
		default:
			dst = append(dst, b[i:i+size]...)
		}
		i += size
	}
	return dst
}

// isPlain reports whether a byte is printable ASCII and not special.
func isPlain(c byte, special string) bool {
	return ' ' <= c && c < 0x7f && (special == "" || c != special[0] && c != special[len(special)-1])
}

func appendEscape(dst []byte, char string) []byte {
	for _, c := range []byte(char) {
		switch c {
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return dst
}

// nextRune returns the length of the character at b[i] and whether it is printable. An
// invalid byte counts as one character, which is not printable.
func nextRune[T Bytes](b T, i int) (size int, printable bool) {
	if c := b[i]; c < utf8.RuneSelf {
		return 1, ' ' <= c && c < 0x7f
	}
	r, size := utf8.DecodeRuneInString(string(b[i:min(i+utf8.UTFMax, len(b))]))
	return size, size > 1 && unicode.IsPrint(r)
}

// A SyntaxError is the error that [Unescape] and [Unquote] return for invalid text.
type SyntaxError struct {
	Offset int    // in bytes, from the start of the text
	Want   string // what was expected
	Got    string // what was found
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Want, e.Got)
}

// Unescape decodes C escapes. It accepts more than [Escape] writes: any \xHH, in upper or
// lower case, and any unescaped byte but a backslash. The error is a *[SyntaxError].
func Unescape(s string) (string, error) { return unescape(s, 0, "") }

// Unquote decodes text in double quotes. It accepts the escape \" and the escapes that [Unescape]
// accepts. The error is a *[SyntaxError].
func Unquote(s string) (string, error) {
	if s == "" || s[0] != '"' {
		return "", syntaxError(s, 0, 1, `a " at the start`)
	}
	inner := s[1:]
	for i := 0; i < len(inner); i++ {
		switch inner[i] {
		case '\\':
			i++
		case '"':
			if i+1 < len(inner) {
				return "", syntaxError(s, i+2, 1, `the end of the text after the closing "`)
			}
			return unescape(inner[:i], 1, `"`)
		}
	}
	return "", syntaxError(s, len(s), 0, `a closing "`)
}

// unescape decodes s. It adds base, the offset of s in the user's text, to the offset of
// an error. If quote is not empty, a backslash can also escape this quotation mark.
func unescape(s string, base int, quote string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		size := 2
		switch c := at(s, i+1); {
		case c == 'n':
			out = append(out, '\n')
		case c == 'r':
			out = append(out, '\r')
		case c == 't':
			out = append(out, '\t')
		case c == '\\' || quote != "" && c == quote[0]:
			out = append(out, c)
		case c == 'x':
			size = 4
			n, err := strconv.ParseUint(s[min(i+2, len(s)):min(i+size, len(s))], 16, 8)
			if err != nil || i+size > len(s) {
				return "", shifted(syntaxError(s, i, size, `\x and two hexadecimal digits`), base)
			}
			out = append(out, byte(n))
		default:
			want := `one of \n \r \t \\ \xHH`
			if quote != "" {
				want = `one of \n \r \t \\ \" \xHH`
			}
			_, width := utf8.DecodeRuneInString(s[i+1:])
			return "", shifted(syntaxError(s, i, 1+width, want), base)
		}
		i += size - 1
	}
	return string(out), nil
}

// at returns s[i] or, after the end, NUL, which no escape contains.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// syntaxError returns an error that shows the n bytes of s at offset, and what was expected there.
func syntaxError(s string, offset, n int, want string) *SyntaxError {
	got := "the end of the text"
	if offset < len(s) {
		got = printable(s[offset:min(offset+n, len(s))])
	}
	return &SyntaxError{Offset: offset, Want: want, Got: got}
}

func shifted(e *SyntaxError, by int) *SyntaxError {
	e.Offset += by
	return e
}

// Word returns b as one word of a line of the shell or of a batch. The word is quoted unless it
// consists of letters, digits and punctuation without a special meaning. A word that begins with
// a minus is quoted too, because - means standard input and -x is an option.
func Word[T Bytes](b T) string {
	if len(b) == 0 || b[0] == '-' {
		return Quote(b)
	}
	for _, r := range string(b) {
		if !bare(r) {
			return Quote(b)
		}
	}
	return string(b)
}

// Path formats a file name for a message. It is like [BriefWord], but on Windows a backslash neither
// needs quotes nor is doubled.
func Path(name string) string {
	if runtime.GOOS != "windows" {
		return BriefWord(name)
	}
	if slashed := strings.ReplaceAll(name, `\`, "/"); BriefWord(slashed) == slashed {
		return name
	}
	return strings.ReplaceAll(BriefWord(name), `\\`, `\`)
}

// Location formats a place in a file as FILE:LINE:COLUMN, which editors open: the name has no quotes, and only
// unprintable characters are escaped. It ends with the line if column is 0, and with the file if line is 0. The file
// "-" is standard input.
func Location(file string, line, column int) string {
	if file == "-" {
		file = "standard input"
	}
	text := printable(file)
	for _, n := range []int{line, column} {
		if n == 0 {
			break
		}
		text += ":" + strconv.Itoa(n)
	}
	return text
}

// ShWord returns b as one word for sh(1), so that users can safely paste a hint that contains it.
// Printable text that needs quotes is put in single quotes. sscli's own shell reads such a word the
// same way, unless the text contains a single quote. Text with other bytes is put in $'…', which bash,
// zsh and POSIX.1-2024 support.
func ShWord[T Bytes](b T) string {
	text := string(b)
	plain := func(r rune) bool { return r < utf8.RuneSelf && r != '=' && bare(r) } // zsh expands =word
	switch {
	case text != "" && strings.TrimLeftFunc(text, plain) == "":
		return text
	case utf8.ValidString(text) && strings.TrimLeftFunc(text, unicode.IsPrint) == "":
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var quoted strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '\'' || c == '\\' {
			fmt.Fprintf(&quoted, `\x%02x`, c)
		} else {
			quoted.WriteByte(c)
		}
	}
	return "$'" + quoted.String() + "'"
}

// bare reports whether r needs no quotes. U+FFFD needs quotes, because a range loop yields it for
// invalid UTF-8.
func bare(r rune) bool {
	switch r {
	case '_', '-', '.', '/', ':', '=', '@', '%', '+', ',':
		return true
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// maxBrief is the maximum number of bytes of a key or a value that a message shows.
const maxBrief = 120

// Brief is like [Quote], but for a message: it cuts text after 120 bytes and appends the full length.
func Brief[T Bytes](b T) string { return brief(b, Quote[T]) }

// BriefWord is like [Word], but shortens text as [Brief] does.
func BriefWord[T Bytes](b T) string { return brief(b, Word[T]) }

// BriefShWord is like [ShWord], but shortens text as [Brief] does.
func BriefShWord[T Bytes](b T) string { return brief(b, ShWord[T]) }

func brief[T Bytes](b T, quote func(T) string) string {
	if len(b) <= maxBrief {
		return quote(b)
	}
	return fmt.Sprintf("%s… (%d bytes)", quote(T(b[:maxBrief])), len(b))
}

// Verb returns a protocol verb as messages show it: in lower case and escaped.
func Verb(verb string) string { return strings.ToLower(Escape(verb)) }
