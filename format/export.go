package format

import (
	"fmt"
	"strings"
	"time"
)

// ExportSummary is what `export` has read, for standard error.
type ExportSummary struct {
	Keys    int // printed with their values
	Missing int // named keys that the store does not have
	Refused int // keys that could not be read
	Bytes   int64
	Elapsed time.Duration
	Meanwhile
}

func (s ExportSummary) fields() object {
	return append(object{
		{"op", "export"},
		{"keys", s.Keys},
		{"missing", s.Missing},
		{"refused", s.Refused},
		{"bytes", s.Bytes},
		{"elapsed_ms", milliseconds(s.Elapsed)},
		{"rate", perSecond(s.Keys, s.Elapsed)},
	}, s.Meanwhile.fields()...)
}

func (s ExportSummary) human(dst []byte, st *style) []byte {
	return s.text(dst, st.faint.Sprint("sscli:"))
}

func (s ExportSummary) raw(dst []byte) []byte { return s.text(dst, "sscli:") }

func (s ExportSummary) text(dst []byte, prefix string) []byte {
	dst = fmt.Appendf(append(dst, prefix...), " %s, %s", Count(s.Keys, "key"), Count(int(s.Bytes), "byte"))
	if s.Missing > 0 {
		dst = fmt.Appendf(dst, ", %d missing", s.Missing)
	}
	if s.Refused > 0 {
		dst = fmt.Appendf(dst, ", %d refused", s.Refused)
	}
	dst = fmt.Appendf(dst, "; %s, %d/s\n", seconds(s.Elapsed), perSecond(s.Keys, s.Elapsed))
	return s.Meanwhile.text(dst, prefix)
}

// perSecond returns how many there were per second, rounded.
func perSecond(n int, elapsed time.Duration) int64 {
	if elapsed <= 0 {
		return 0
	}
	return int64(float64(n)/elapsed.Seconds() + 0.5)
}

// Meanwhile is what other clients changed while many keys were read.
type Meanwhile struct {
	Written int      // keys whose version is newer than the begin of the reading
	Deleted int      // keys that were listed, and gone when they were read
	Changed []string // the first of these keys
}

// mostChanged is the most keys that a Meanwhile names.
const mostChanged = 5

// Saw notes a key that was written or deleted meanwhile.
func (m *Meanwhile) Saw(key string, deleted bool) {
	if deleted {
		m.Deleted++
	} else {
		m.Written++
	}
	if len(m.Changed) < mostChanged {
		m.Changed = append(m.Changed, key)
	}
}

func (m Meanwhile) fields() object {
	keys := make(list, len(m.Changed))
	for i, key := range m.Changed {
		keys[i] = key
	}
	return object{
		{"written_meanwhile", m.Written},
		{"deleted_meanwhile", m.Deleted},
		{"changed_keys", when(len(keys) > 0, keys)},
	}
}

// text appends a line, if anything changed.
func (m Meanwhile) text(dst []byte, prefix string) []byte {
	var parts []string
	for _, p := range []struct {
		n    int
		verb string
	}{{m.Written, "written"}, {m.Deleted, "deleted"}} {
		if p.n > 0 {
			parts = append(parts, Count(p.n, "key")+" "+map[bool]string{true: "was ", false: "were "}[p.n == 1]+p.verb)
		}
	}
	if len(parts) == 0 {
		return dst
	}
	words := make([]string, len(m.Changed), len(m.Changed)+1)
	for i, key := range m.Changed {
		words[i] = BriefWord(key)
	}
	if m.Written+m.Deleted > len(words) {
		words = append(words, "…")
	}
	return fmt.Appendf(append(dst, prefix...), " while the keys were read, %s: %s\n", strings.Join(parts, " and "), strings.Join(words, ", "))
}
