package format

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// conjoining are the vowels and final consonants of Hangul. Like combining characters,
// they take no column: a terminal combines them with the letter before them.
var conjoining = &unicode.RangeTable{R16: []unicode.Range16{{0x1160, 0x11ff, 1}, {0xd7b0, 0xd7ff, 1}}}

// Width returns the number of terminal columns of a printable character: 0 if it
// combines with the character before it, 2 if it is wide, else 1.
func Width(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, conjoining) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Columns returns the number of terminal columns that text takes. text must not have control characters.
func Columns(text string) (n int) {
	for _, r := range text {
		n += Width(r)
	}
	return n
}

// Cut returns text if it fits into the given number of terminal columns. Otherwise it cuts text and
// ends it with "…". text must not have control characters.
func Cut(text string, columns int) string {
	n, fits := 0, 0 // fits is the length of the part that leaves a column for the "…"
	for i, r := range text {
		if n < columns {
			fits = i
		}
		if n += Width(r); n > columns && columns > 0 {
			return text[:fits] + "…"
		}
	}
	if n > columns {
		return ""
	}
	return text
}

// CutMiddle is like [Cut], but puts the "…" in the middle. It is for names whose end matters as much
// as their beginning.
func CutMiddle(text string, columns int) string {
	if Columns(text) <= columns || columns < 3 {
		return Cut(text, columns)
	}
	head := Cut(text, (columns+1)/2)
	rest := columns - Columns(head)
	tail := len(text)
	for tail > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:tail])
		if rest -= Width(r); rest < 0 {
			break
		}
		tail -= size
	}
	for tail < len(text) { // skip combining characters whose base character was cut
		r, size := utf8.DecodeRuneInString(text[tail:])
		if Width(r) > 0 {
			break
		}
		tail += size
	}
	return head + text[tail:]
}
