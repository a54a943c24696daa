package format

import "time"

// Del is the result of `del` for one key, and of `vdel`.
type Del struct {
	Op      string // "del" or "vdel"
	Key     string
	Deleted bool
	Differs bool // of vdel: the key was not deleted because its value differs
	Version Version
	RTT     time.Duration // 0: not measured
	Many    bool          // one of several results: show the key
}

// answer returns the number that the store replied: 1 deleted, 0 missing, -1 the value differs.
func (d Del) answer() (n int64, reason string) {
	switch {
	case d.Deleted:
		return 1, ""
	case d.Differs:
		return -1, "differs"
	}
	return 0, "missing"
}

func (d Del) fields(o *objectWriter) {
	n, reason := d.answer()
	o.add("op", d.Op)
	o.add("key", d.Key)
	o.add("deleted", d.Deleted)
	o.add("count", n)
	o.add("reason", nonEmpty(reason))
	o.add("version", d.Version)
	o.add("rtt_ms", nonZero(d.RTT))
}

func (d Del) human(w *writer) {
	if d.Many {
		w.row(d)
		return
	}
	n, reason := d.answer()
	w.answer(outcome(reason), n)
	w.version(d.Version)
}

// outcome says whether a key was deleted. reason says why not, and is empty if it was.
func outcome(reason string) string {
	if reason == "" {
		return "deleted"
	}
	return "not deleted: " + meaning(reason)
}

// cells returns the key, whether it was deleted, the number that the store replied, and the version. A result of vdel, which has one key, is not a row.
func (d Del) cells(s *style) []cell {
	if d.Op == "vdel" {
		return nil
	}
	n, reason := d.answer()
	row := []cell{{text: Word(d.Key), paint: s.key}, {text: outcome(reason)}, {text: integer(n), paint: s.faint}}
	if !none(d.Version) {
		row = append(row, cell{text: versionText(d.Version, ""), paint: s.faint, keep: true})
	}
	return row
}

// raw omits the key: results are in the order of the keys.
func (d Del) raw(w *writer) {
	n, _ := d.answer()
	w.record(n, d.Version)
}
