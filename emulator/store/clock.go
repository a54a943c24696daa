package store

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
)

// A stamp is an HLC that a request brought, read in place. The zero stamp is none.
type stamp struct {
	wall    int64 // milliseconds since the Unix epoch
	counter uint64
	node    []byte // not empty
	text    []byte // as it came
}

func (v stamp) given() bool { return v.text != nil }

func (v stamp) compare(o stamp) int {
	return cmp.Or(cmp.Compare(v.wall, o.wall), cmp.Compare(v.counter, o.counter), bytes.Compare(v.node, o.node))
}

// parseStamp reads an HLC as the store takes it, which is stricter than what clients take
// from the store: numbers without a sign, and a node (protocol.md 3.3). Padding with zeros
// is fine. What MQTT could not carry in a property is no HLC either.
func parseStamp(text []byte) (stamp, bool) {
	wall, rest, ok := cutDigits(text)
	if !ok || len(rest) == 0 || rest[0] != ':' || wall > math.MaxInt64 {
		return stamp{}, false
	}
	counter, rest, ok := cutDigits(rest[1:])
	if !ok || len(rest) < 2 || rest[0] != ':' || bytes.IndexByte(rest[1:], ':') >= 0 || len(text) > math.MaxUint16 {
		return stamp{}, false
	}
	return stamp{wall: int64(wall), counter: counter, node: rest[1:], text: text}, true
}

// cutDigits reads the decimal digits that a text begins with, at least one.
func cutDigits(text []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(text); i++ {
		digit := uint64(text[i] - '0')
		if digit > 9 {
			break
		}
		if n >= math.MaxUint64/10 && (n > math.MaxUint64/10 || digit > math.MaxUint64%10) {
			return 0, nil, false
		}
		n = 10*n + digit
	}
	return n, text[i:], i > 0
}

// clock is the hybrid logical clock of protocol.md 3.4 from the store's side: one
// step takes in what was received and gives the version. It never refuses, since
// the store has checked the drift before.
type clock struct {
	wall    int64
	counter uint64

	text   []byte // of wall, with the colon after it, as it was last appended
	textOf int64
}

func (c *clock) next(now int64, seen stamp) {
	if seen.wall > c.wall || seen.wall == c.wall && seen.counter > c.counter {
		c.wall, c.counter = seen.wall, seen.counter
	}
	switch {
	case now > c.wall:
		c.wall, c.counter = now, 0
	case c.counter == math.MaxUint64:
		c.wall, c.counter = c.wall+1, 0
	default:
		c.counter++
	}
}

// appendText appends the reading as text: unpadded, as the document writes versions, or
// padded as the SDKs do (protocol.md 3.1).
func (c *clock) appendText(dst []byte, node string, padded bool) []byte {
	wall, counter := 0, 0
	if padded {
		wall, counter = 15, 5
	}
	if len(c.text) == 0 || c.textOf != c.wall { // many readings have the same
		c.text = append(appendPadded(c.text[:0], uint64(max(c.wall, 0)), wall), ':')
		c.textOf = c.wall
	}
	dst = append(dst, c.text...)
	dst = appendPadded(dst, c.counter, counter)
	dst = append(dst, ':')
	return append(dst, node...)
}

// appendPadded appends a number with zeros before it up to the width.
func appendPadded(dst []byte, n uint64, width int) []byte {
	begin := len(dst)
	dst = strconv.AppendUint(dst, n, 10)
	for len(dst) < begin+width {
		dst = slices.Insert(dst, begin, '0')
	}
	return dst
}
