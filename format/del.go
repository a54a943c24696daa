package format

import "time"

// Del is the result of `del` for one key, and of `vdel`.
type Del struct {
	Op      string // "del" or "vdel"
	Key     string
	Deleted bool
	Differs bool // vdel only: the key was not deleted, because its value differs
	Changed bool // del --match only: the key was not deleted, because another client wrote it after it was read
	Version Version
	RTT     time.Duration // 0 = not measured
	Many    bool          // one of several results: show the key
}

// answer returns the number in the store's reply (1 = deleted, 0 = missing, -1 = differs or changed), and why
// the key was not deleted.
func (d Del) answer() (n int64, reason string) {
	switch {
	case d.Deleted:
		return 1, ""
	case d.Differs:
		return -1, "differs"
	case d.Changed:
		return -1, "changed"
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

// outcome returns, in words, whether a key was deleted. reason is the reason why it was not deleted,
// or empty if it was.
func outcome(reason string) string {
	if reason == "" {
		return "deleted"
	}
	return "not deleted: " + meaning(reason)
}

// cells returns the key, whether it was deleted, the number in the store's reply, and the version.
// The result of vdel is not a row, because vdel deletes only one key.
func (d Del) cells(s *style) []cell {
	if d.Op == "vdel" {
		return nil
	}
	n, reason := d.answer()
	row := []cell{{text: Word(d.Key), paint: s.key}, {text: outcome(reason)}, {text: integer(n), paint: s.faint}}
	if !d.Version.IsZero() {
		row = append(row, cell{text: versionText(d.Version, ""), paint: s.faint, keep: true})
	}
	return row
}

// raw omits the key: the results come in the order of the keys in the command.
func (d Del) raw(w *writer) {
	n, _ := d.answer()
	w.record(n, d.Version)
}
