package format

import (
	"fmt"
	"strconv"
)

// ImportSummary is the result of `import`. The sum of the counts is the number of lines that
// were handled.
type ImportSummary struct{ Batch BatchSummary }

func (s ImportSummary) fields() object {
	o := s.Batch.fields()
	o[0].value = "import"
	for i := range o {
		if o[i].name == "no" {
			o[i].name = "exist"
		}
	}
	return o
}

func (s ImportSummary) human(dst []byte, st *style) []byte {
	dst = s.counts(append(dst, "imported "...))
	dst = append(dst, st.faint.Sprintf("  (%s, %d/s)", seconds(s.Batch.Elapsed), s.Batch.rate())...)
	return append(dst, '\n')
}

// counts appends how many keys were imported, and how many were not.
func (s ImportSummary) counts(dst []byte) []byte {
	b := s.Batch
	dst = append(dst, Count(b.Applied, "key")...)
	for _, part := range []struct {
		n    int
		text string
	}{{b.No, "exist already"}, {b.Refused, "refused"}, {b.Unknown, "unknown"}, {b.Skipped, "skipped"}} {
		if part.n > 0 {
			dst = fmt.Appendf(dst, ", %d %s", part.n, part.text)
		}
	}
	return dst
}

// raw writes the numbers of lines that were applied, exist already, were refused, are unknown
// and were skipped, and the line to continue from, which is 0 at the end of the input.
func (s ImportSummary) raw(dst []byte) []byte {
	for _, n := range []int{s.Batch.Applied, s.Batch.No, s.Batch.Refused, s.Batch.Unknown, s.Batch.Skipped} {
		dst = append(strconv.AppendInt(dst, int64(n), 10), '\t')
	}
	return append(strconv.AppendInt(dst, int64(s.Batch.Resume), 10), '\n')
}

// DryRunSummary counts what an import would do, for standard error.
type DryRunSummary struct{ Batch BatchSummary }

func (s DryRunSummary) fields() object {
	return append(ImportSummary(s).fields(), field{"dry_run", true})
}

func (s DryRunSummary) human(dst []byte, st *style) []byte {
	return s.text(dst, st.faint.Sprint("sscli:"))
}

func (s DryRunSummary) raw(dst []byte) []byte { return s.text(dst, "sscli:") }

func (s DryRunSummary) text(dst []byte, prefix string) []byte {
	dst = ImportSummary(s).counts(append(append(dst, prefix...), " nothing was written, an import would set "...))
	return append(dst, '\n')
}

// ImportPlan is what `import --dry-run` says of one line.
type ImportPlan struct {
	Key     string
	Action  string  // "create", "replace", "same", "exists" (with --only-new) or "skip"
	Version Version // of the key as it is; nil: missing
}

func (p ImportPlan) fields() object {
	return object{{"op", "import"}, {"key", p.Key}, {"action", p.Action}, {"version", versionField(p.Version)}}
}

func (p ImportPlan) human(dst []byte, s *style) []byte { return s.row(dst, p) }

func (p ImportPlan) cells(s *style) []cell {
	written := "missing"
	if !none(p.Version) {
		written = age(s.now().Sub(p.Version.Time()))
	}
	return []cell{
		{text: p.Action, least: len("replace")},
		{text: written, paint: s.faint, least: ageColumns},
		{text: Word(p.Key), paint: s.key},
	}
}

// raw writes the action, the key, and the version of the key as it is.
func (p ImportPlan) raw(dst []byte) []byte {
	dst = append(AppendEscape(append(append(dst, p.Action...), '\t'), p.Key), '\t')
	return append(appendVersion(dst, p.Version, "-"), '\n')
}
