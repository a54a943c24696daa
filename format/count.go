package format

import (
	"strconv"
	"time"
)

// Count is the result of `del` and `vdel`, a number.
type Count struct {
	Op      string // "del" or "vdel"
	Key     string
	N       int64 // 1: deleted; 0: missing; -1: the value differs
	Version Version
	RTT     time.Duration // 0: not measured
	Many    bool          // one of several keys: the human form names the key
}

func (c Count) reason() string {
	switch {
	case c.N > 0:
		return ""
	case c.N == 0:
		return "missing"
	}
	return "differs"
}

func (c Count) fields() object {
	return object{
		{"op", c.Op},
		{"key", c.Key},
		{"deleted", c.N > 0},
		{"count", c.N},
		{"reason", nonEmpty(c.reason())},
		{"version", versionFields(c.Version)},
		{"rtt_ms", rtt(c.RTT)},
	}
}

func (c Count) human(dst []byte, s *style) []byte {
	if c.Many {
		dst = s.keyed(dst, c.Key)
	}
	return s.version(s.integer(dst, c.N, meaning(c.reason())), c.Version)
}

// raw does not name the key even if there are several: they are answered in the order of
// the command line.
func (c Count) raw(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, c.N, 10), '\t')
	return append(appendVersion(dst, c.Version, "-"), '\n')
}
