package format

import "strconv"

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
