package format

// ImportSummary is the result of `import`.
type ImportSummary struct{ Batch BatchSummary }

func (s ImportSummary) fields(o *objectWriter) {
	s.Batch.write(o, "import", "exist")
	o.add("newer", when(s.Batch.Newer > 0, s.Batch.Newer))
}

func (s ImportSummary) human(w *writer) {
	w.print("imported ")
	s.counts(w)
	w.print(w.faint.Sprintf("  (%s, %d/s)", seconds(s.Batch.Elapsed), s.Batch.rate()), "\n")
}

// counts writes, in words, the number of imported keys, and the numbers of other lines by outcome.
func (s ImportSummary) counts(w *writer) {
	b := s.Batch
	w.print(Count(b.Applied, "key"))
	w.counts(count{b.No, "exist already"}, count{b.Refused, "refused"}, count{b.Unknown, "unknown"}, count{b.Skipped, "skipped"})
}

// raw writes six numbers. The first five are counts of lines: applied, key exists (with --only-new),
// refused, outcome unknown, and skipped. The sixth is the number of the line to continue from; 0
// means that the import reached the end of its input.
func (s ImportSummary) raw(w *writer) {
	b := s.Batch
	w.record(b.Applied, b.No, b.Refused, b.Unknown, b.Skipped, b.Resume)
}

// DryRunSummary counts what an import would do, for standard error.
type DryRunSummary struct{ Batch BatchSummary }

func (DryRunSummary) diagnostic() {}

func (s DryRunSummary) fields(o *objectWriter) {
	ImportSummary(s).fields(o)
	o.add("dry_run", true)
}

func (s DryRunSummary) human(w *writer) {
	w.program("nothing was written, an import would set ")
	ImportSummary(s).counts(w)
	if s.Batch.Newer > 0 {
		w.printf("; newer in the store: %d", s.Batch.Newer)
	}
	w.print("\n")
}

// ImportPlan is what `import` would do with one line, for `import --dry-run`.
type ImportPlan struct {
	Key     string  `json:"key"`
	Action  string  `json:"action"`  // "create", "replace", "same", "exists" (with --only-new) or "skip"
	Version Version `json:"version"` // the key's current version; zero = the key is missing, or its version is not known
	Missing bool    // the key does not exist
}

func (p ImportPlan) fields(o *objectWriter) { o.result("import", p) }

func (p ImportPlan) human(w *writer) { w.row(p) }

func (p ImportPlan) cells(s *style) []cell {
	written := "-"
	switch {
	case p.Missing:
		written = "missing"
	case !p.Version.IsZero():
		written = Age(s.now().Sub(p.Version.Time()))
	}
	return []cell{
		{text: p.Action, least: len("replace")},
		{text: written, paint: s.faint, least: ageColumns},
		{text: Word(p.Key), paint: s.key},
	}
}

// raw writes the action, the key, and the key's current version.
func (p ImportPlan) raw(w *writer) { w.record(p.Action, p.Key, p.Version) }
