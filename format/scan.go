package format

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Key is a key that `scan` found.
type Key struct {
	N   int // its number in the listing, counted from 1
	Key string
}

func (k Key) fields() object { return object{{"op", "scan"}, {"key", k.Key}} }

func (k Key) human(dst []byte, _ *style) []byte {
	dst = append(strconv.AppendInt(dst, int64(k.N), 10), ") "...)
	return append(AppendQuote(dst, k.Key), '\n')
}

func (k Key) raw(dst []byte) []byte { return append(AppendEscape(dst, k.Key), '\n') }

// LongKey is a key that `scan --long` found. [NewLongKey] makes one.
type LongKey struct {
	Key     string
	Size    int     // of the value, in bytes
	Version Version // nil: not sent by the store
	Preview string  // the first bytes of the value
	Width   int     // of the column with the keys, in the human output; 0: as wide as the key
}

// mostPreview is the most bytes of a value that a LongKey shows.
const mostPreview = 64

// NewLongKey returns a LongKey that holds no more of the value than it shows.
func NewLongKey(key string, value []byte, v Version) LongKey {
	begin := value[:min(len(value), mostPreview)]
	// Text stays text: do not cut a character.
	for cut := len(begin); len(begin) < len(value) && cut > len(begin)-utf8.UTFMax && cut > 0; {
		cut--
		if utf8.RuneStart(begin[cut]) {
			if !utf8.FullRune(begin[cut:]) {
				begin = begin[:cut]
			}
			break
		}
	}
	return LongKey{Key: key, Size: len(value), Version: v, Preview: string(begin)}
}

func (k LongKey) cut() bool { return len(k.Preview) < k.Size }

func (k LongKey) fields() object {
	return object{
		{"op", "scan"},
		{"key", k.Key},
		{"size", k.Size},
		{"version", versionFields(k.Version)},
		{"preview", k.Preview},
		{"cut", when(k.cut(), true)},
	}
}

// human writes size, age, key and the beginning of the value, in columns.
func (k LongKey) human(dst []byte, s *style) []byte {
	written := "-"
	if !none(k.Version) {
		written = age(s.now().Sub(k.Version.Time()))
	}
	dst = fmt.Appendf(dst, "%8d  %s  ", k.Size, s.faint.Sprintf("%13s", written))
	word := Word(k.Key)
	dst = append(dst, s.key.Sprint(word)...)
	for range k.Width - utf8.RuneCountInString(word) {
		dst = append(dst, ' ')
	}
	dst = AppendQuote(append(dst, "  "...), k.Preview)
	if k.cut() {
		dst = append(dst, "…"...)
	}
	return append(dst, '\n')
}

// raw writes the key, the version, the size, and the beginning of the value.
func (k LongKey) raw(dst []byte) []byte {
	dst = append(AppendEscape(dst, k.Key), '\t')
	dst = append(appendVersion(dst, k.Version, "?"), '\t')
	dst = append(strconv.AppendInt(dst, int64(k.Size), 10), '\t')
	return append(AppendEscape(dst, k.Preview), '\n')
}
