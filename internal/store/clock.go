package store

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
)

// An hlc is a reading of a hybrid logical clock, usually from a request. Its slices alias the text
// that it was parsed from. The zero hlc stands for no reading.
type hlc struct {
	wall    int64 // milliseconds since the Unix epoch
	counter uint64
	node    []byte // not empty
	text    []byte // as received
}

func (v hlc) given() bool { return v.text != nil }

func (v hlc) compare(o hlc) int {
	return cmp.Or(cmp.Compare(v.wall, o.wall), cmp.Compare(v.counter, o.counter), bytes.Compare(v.node, o.node))
}

// parseHLC parses an HLC. The store's rules for an HLC are stricter than the rules by which clients parse
// versions: numbers must not have a sign, and a node is required (protocol.md 3.3). Leading zeros are
// allowed. Text that is too long for an MQTT property is not an HLC.
func parseHLC(text []byte) (hlc, bool) {
	if len(text) > math.MaxUint16 {
		return hlc{}, false
	}
	wall, rest, ok := cutDigits(text)
	if !ok || len(rest) == 0 || rest[0] != ':' || wall > math.MaxInt64 {
		return hlc{}, false
	}
	counter, rest, ok := cutDigits(rest[1:])
	if !ok || len(rest) < 2 || rest[0] != ':' || bytes.IndexByte(rest[1:], ':') >= 0 {
		return hlc{}, false
	}
	return hlc{wall: int64(wall), counter: counter, node: rest[1:], text: text}, true
}

// maxDigits is the maximum number of decimal digits in an unsigned 64-bit number.
const maxDigits = 20

// cutDigits parses the decimal digits at the beginning of text. ok is false unless there are between
// 1 and maxDigits digits and the number fits in 64 bits.
func cutDigits(text []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(text) && i <= maxDigits; i++ {
		digit := uint64(text[i] - '0')
		if digit > 9 {
			break
		}
		if n >= math.MaxUint64/10 && (n > math.MaxUint64/10 || digit > math.MaxUint64%10) {
			return 0, nil, false
		}
		n = 10*n + digit
	}
	return n, text[i:], i > 0 && i <= maxDigits
}

// clock is the store's hybrid logical clock (protocol.md 3.4). The caller checks that received
// readings are not too far ahead.
type clock struct {
	wall    int64
	counter uint64

	prefix   []byte // prefixOf as text, and a colon; reused while wall stays the same
	prefixOf int64
}

// next advances the clock to a reading that is later than its last reading and the reading seen. The new
// wall clock is at least now, in milliseconds since the Unix epoch.
func (c *clock) next(now int64, seen hlc) {
	c.see(seen)
	switch {
	case now > c.wall:
		c.wall, c.counter = now, 0
	case c.counter == math.MaxUint64:
		c.wall, c.counter = c.wall+1, 0
	default:
		c.counter++
	}
}

// see advances the clock to the reading seen, if that is later.
func (c *clock) see(seen hlc) {
	if seen.wall > c.wall || seen.wall == c.wall && seen.counter > c.counter {
		c.wall, c.counter = seen.wall, seen.counter
	}
}

// appendText appends the clock's reading as text. The numbers are unpadded, as in the published protocol,
// or padded with zeros, as in the SDKs (protocol.md 3.1).
func (c *clock) appendText(dst []byte, node string, padded bool) []byte {
	wall, counter := 0, 0
	if padded {
		wall, counter = 15, 5
	}
	if len(c.prefix) == 0 || c.prefixOf != c.wall {
		c.prefix = append(appendPadded(c.prefix[:0], uint64(max(c.wall, 0)), wall), ':')
		c.prefixOf = c.wall
	}
	dst = append(dst, c.prefix...)
	dst = append(appendPadded(dst, c.counter, counter), ':')
	return append(dst, node...)
}

// appendPadded appends a number, padded with leading zeros to at least width digits.
func appendPadded(dst []byte, n uint64, width int) []byte {
	begin := len(dst)
	dst = strconv.AppendUint(dst, n, 10)
	for len(dst) < begin+width {
		dst = slices.Insert(dst, begin, '0')
	}
	return dst
}
