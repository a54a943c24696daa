package format

import (
	"strings"
	"time"
)

// ExportSummary counts the keys that `export` read, for standard error.
type ExportSummary struct {
	Keys    int // keys that were printed, with their values
	Missing int // named keys that the store does not have
	Refused int // keys that the store refused to read
	Bytes   int64
	Elapsed time.Duration
	Meanwhile
}

func (ExportSummary) diagnostic() {}

func (s ExportSummary) fields(o *objectWriter) {
	o.add("op", "export")
	o.add("keys", s.Keys)
	o.add("missing", s.Missing)
	o.add("refused", s.Refused)
	o.add("bytes", s.Bytes)
	o.add("elapsed_ms", s.Elapsed)
	o.add("rate", perSecond(s.Keys, s.Elapsed))
	o.structure(s.Meanwhile)
}

func (s ExportSummary) human(w *writer) {
	w.program("%s, %s", Count(s.Keys, "key"), Count(int(s.Bytes), "byte"))
	w.counts(count{s.Missing, "missing"}, count{s.Refused, "refused"})
	w.printf("; %s, %d/s\n", seconds(s.Elapsed), perSecond(s.Keys, s.Elapsed))
	s.Meanwhile.line(w)
}

// perSecond returns a rate per second, rounded.
func perSecond(n int, elapsed time.Duration) int64 {
	if elapsed <= 0 {
		return 0
	}
	return int64(float64(n)/elapsed.Seconds() + 0.5)
}

// Meanwhile counts what other clients changed during a read of many keys.
type Meanwhile struct {
	Written int      `json:"written_meanwhile"`      // keys whose version is newer than the start of the read
	Deleted int      `json:"deleted_meanwhile"`      // keys that were listed but no longer existed when they were read
	Changed []string `json:"changed_keys,omitempty"` // the first maxChanged of the written and deleted keys
}

// maxChanged is the maximum number of keys that a Meanwhile names.
const maxChanged = 5

// Record records that a key was written or deleted during the read.
func (m *Meanwhile) Record(key string, deleted bool) {
	if deleted {
		m.Deleted++
	} else {
		m.Written++
	}
	if len(m.Changed) < maxChanged {
		m.Changed = append(m.Changed, key)
	}
}

// line writes a line about the changes, if there are any.
func (m Meanwhile) line(w *writer) {
	var parts []string
	for _, p := range []struct {
		n    int
		verb string
	}{{m.Written, "written"}, {m.Deleted, "deleted"}} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 key was "+p.verb)
		case p.n > 1:
			parts = append(parts, Count(p.n, "key")+" were "+p.verb)
		}
	}
	if len(parts) == 0 {
		return
	}
	words := make([]string, len(m.Changed), len(m.Changed)+1)
	for i, key := range m.Changed {
		words[i] = BriefWord(key)
	}
	if m.Written+m.Deleted > len(words) {
		words = append(words, "…")
	}
	w.program("while the keys were read, %s: %s\n", strings.Join(parts, " and "), strings.Join(words, ", "))
}
