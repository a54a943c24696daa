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

func (d Del) fields(o *objectWriter) {
	n, reason := d.answer()
	deletion(o, "del", d.Key, n, reason, d.Version, d.RTT)
}

func (d Del) human(dst []byte, s *style) []byte {
	if d.Many {
		return s.row(dst, d)
	}
	n, reason := d.answer()
	return s.deletion(dst, n, reason, d.Version)
}

// cells are the key, what became of it, the store's answer, and the version where there is
// room for it.
func (d Del) cells(s *style) []cell {
	n, reason := d.answer()
	row := []cell{{text: Word(d.Key), paint: s.key}, {text: deleted(reason)}, {text: integer(n), paint: s.faint}}
	if s.isWide() && !none(d.Version) {
		row = append(row, cell{text: string(appendVersion(nil, d.Version, "")), paint: s.faint})
	}
	return row
}

// raw has no key: replies are in the order of the keys.
func (d Del) raw(dst []byte) []byte {
	n, _ := d.answer()
	return appendRecord(dst, n, d.Version)
}
