package format

import (
	"fmt"
	"strconv"
)

// Clock is the result of `hlc now` and `hlc parse`.
type Clock struct {
	Op      string  // "now" or "parse"
	Version Version `json:"version"`
}

func (c Clock) fields(o *objectWriter) { o.result("hlc_"+c.Op, c) }

func (c Clock) human(dst []byte, s *style) []byte {
	if none(c.Version) {
		return append(dst, "(nil)\n"...)
	}
	if c.Op == "now" {
		return s.version(dst, c.Version)
	}
	wall, counter, node := c.Version.Parts()
	dst = s.versionAndAge(dst, c.Version)
	return fmt.Appendf(dst, "wall clock %d ms, counter %d, node %s\n", wall, counter, Quote(node))
}

func (c Clock) raw(dst []byte) []byte {
	if none(c.Version) || c.Op == "now" {
		return appendRecord(dst, c.Version)
	}
	wall, counter, node := c.Version.Parts()
	return appendRecord(dst, wall, strconv.FormatUint(counter, 10), node, c.Version.Time())
}

// Compare is the result of `hlc compare`.
type Compare struct {
	A, B  Version
	Order int // -1: A is older; 0: A and B are equal; 1: A is newer
}

func (c Compare) fields(o *objectWriter) {
	o.add("op", "hlc_compare")
	o.add("a", c.A)
	o.add("b", c.B)
	o.add("order", c.Order)
	if !none(c.A) && !none(c.B) {
		o.add("wall_difference_ms", c.A.Time().Sub(c.B.Time()).Milliseconds())
	}
}

func (c Compare) human(dst []byte, _ *style) []byte {
	dst = appendVersion(dst, c.A, "nothing")
	switch {
	case c.Order < 0:
		dst = append(dst, " is older than "...)
	case c.Order > 0:
		dst = append(dst, " is newer than "...)
	default:
		dst = append(dst, " is the same as "...)
	}
	dst = append(appendVersion(dst, c.B, "nothing"), '\n')
	if none(c.A) || none(c.B) {
		return dst
	}
	if d := c.A.Time().Sub(c.B.Time()).Abs(); d > 0 {
		return fmt.Appendf(dst, "the wall clocks differ by %v\n", d)
	}
	return append(dst, "the wall clocks are the same\n"...)
}

func (c Compare) raw(dst []byte) []byte { return appendRecord(dst, c.Order) }
