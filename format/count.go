package format

import (
	"strconv"
	"time"
)

// Count is the answer to `del` and `vdel`, which is a number.
type Count struct {
	Op      string // "del" or "vdel"
	Key     string
	N       int64 // 1 deleted, 0 missing, -1 the value differs
	Version Version
	RTT     time.Duration // zero: not measured
	Many    bool          // one of several keys: say which
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

// raw has the reply first also for several keys: they are answered in the order
// asked.
func (c Count) raw(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, c.N, 10), '\t')
	return append(appendVersion(dst, c.Version, "-"), '\n')
}
