package format

import "time"

// Apply is what `apply` did with one key.
type Apply struct {
	Key     string    `json:"key"`
	Action  string    `json:"action"`        // "created", "changed", "unchanged", "deleted" or "conflict"; with --dry-run "create", "change", "unchanged" or "delete"
	Version Version   `json:"version"`       // the key's current version; zero = the key is missing, or its version is not known
	Time    time.Time `json:"time,omitzero"` // when apply handled the key, with --every; zero = not shown
}

func (a Apply) fields(o *objectWriter) { o.result("apply", a) }

func (a Apply) human(w *writer) { w.row(a) }

func (a Apply) cells(s *style) []cell {
	cells := []cell{
		{text: a.Action, least: len("unchanged")},
		{text: Word(a.Key), paint: s.key},
	}
	if !a.Time.IsZero() {
		return append([]cell{{text: string(appendTime(nil, a.Time)), paint: s.faint}}, cells...)
	}
	return cells
}

// raw writes the action, the key, and the key's current version.
func (a Apply) raw(w *writer) { w.record(a.Action, a.Key, a.Version) }

// ApplySummary counts what `apply` did, for standard error.
type ApplySummary struct {
	Created   int           `json:"created"` // number of keys, like the next six fields
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Deleted   int           `json:"deleted"`
	Conflicts int           `json:"conflicts"` // another client wrote the key during the apply
	Refused   int           `json:"refused"`
	Unknown   int           `json:"unknown"` // the write may or may not have been applied
	Elapsed   time.Duration `json:"elapsed_ms"`
	DryRun    bool          `json:"dry_run,omitzero"` // nothing was written
}

func (ApplySummary) diagnostic() {}

func (s ApplySummary) fields(o *objectWriter) { o.result("apply_summary", s) }

func (s ApplySummary) human(w *writer) {
	words := []string{"created", "changed", "deleted"}
	if s.DryRun {
		w.program("nothing was written: ")
		words = []string{"to create", "to change", "to delete"}
	} else {
		w.program("")
	}
	w.printf("%d %s, %d %s, %d unchanged", s.Created, words[0], s.Changed, words[1], s.Unchanged)
	w.counts(count{s.Deleted, words[2]}, count{s.Conflicts, "changed by another client"}, count{s.Refused, "refused"}, count{s.Unknown, "unknown"})
	w.printf("; %s\n", seconds(s.Elapsed))
}
