package format

import "time"

// Del is the result of `del` for one key.
type Del struct {
	Key     string
	Deleted bool // false: it was missing
	Version Version
	RTT     time.Duration // zero: not measured
	Many    bool          // one of several keys: say which
}

// answer is what the store says: 1 deleted, 0 missing.
func (d Del) answer() (n int64, reason string) {
	if d.Deleted {
		return 1, ""
	}
	return 0, "missing"
}

func (d Del) fields() object {
	n, reason := d.answer()
	return deletion("del", d.Key, n, reason, d.Version, d.RTT)
}

func (d Del) human(dst []byte, s *style) []byte {
	if d.Many {
		dst = s.keyed(dst, d.Key)
	}
	n, reason := d.answer()
	return s.version(s.integer(dst, n, meaning(reason)), d.Version)
}

func (d Del) raw(dst []byte) []byte {
	n, _ := d.answer()
	return rawInteger(dst, n, d.Version)
}
