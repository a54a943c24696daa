package format

import "time"

// Difference is a key that differs between the two sides that `diff` compares.
type Difference struct {
	Change     string        `json:"change"` // "added", "removed" or "changed"
	Key        string        `json:"key"`
	Old        []byte        `json:"old,omitzero"`     // nil = the key is missing on the old side
	New        []byte        `json:"new,omitzero"`     // nil = the key is missing on the new side
	OldVersion Version       `json:"old_version"`      // zero = the key is missing, or its version is not known
	NewVersion Version       `json:"version"`          // zero = the key is missing, or its version is not known
	Fields     []FieldChange `json:"fields,omitempty"` // the changed fields if both values are JSON; otherwise empty
}

// FieldChange is a changed field of a JSON value. Old is empty if the old value lacks the field.
// New is empty if the new value lacks the field.
type FieldChange struct {
	Path     string // for example .config.mode
	Old, New string // JSON
}

func (c FieldChange) fields(o *objectWriter) { c.write(o, "path") }

// write adds the fields to o. path is the name of the field that holds c.Path.
func (c FieldChange) write(o *objectWriter, path string) {
	o.add(path, c.Path)
	o.add("old", when(c.Old != "", jsonText(c.Old)))
	o.add("new", when(c.New != "", jsonText(c.New)))
}

func (c FieldChange) path() string { return printable(c.Path) }

// arrow returns the values of a field, as in `"auto" → "manual"`.
func (c FieldChange) arrow() string { return fieldText(c.Old) + " → " + fieldText(c.New) }

// fieldText returns the JSON value of a field, or (none), for the human output.
func fieldText(value string) string {
	if value == "" {
		return "(none)"
	}
	return string(appendJSONText(nil, value))
}

func (d Difference) fields(o *objectWriter) { o.result("diff", d) }

// human writes + for an added key, - for a removed key, and ~ for a changed key. If both values are
// JSON, a line for each changed field follows.
func (d Difference) human(w *writer) {
	mark := map[string]string{"added": "+ ", "removed": "- ", "changed": "~ "}[d.Change]
	w.print(mark, w.key.Sprint(Word(d.Key)))
	switch {
	case len(d.Fields) > 0:
		for _, c := range d.Fields {
			w.print("\n    ", c.path(), "  ", c.arrow())
		}
	case d.Old == nil:
		w.print("  ", Brief(d.New))
	case d.New == nil:
		w.print("  ", Brief(d.Old))
	default:
		w.print("  ", Brief(d.Old), " → ", Brief(d.New))
	}
	w.print("\n")
}

// raw writes the change, the key, the old and the new version, and the old and the new value. If the
// key is missing on a side, its version is a minus and its value is empty. An unknown version is ?.
func (d Difference) raw(w *writer) {
	version := func(v Version, value []byte) any {
		if value == nil {
			return v
		}
		return versionOr(v, "?")
	}
	w.record(d.Change, d.Key, version(d.OldVersion, d.Old), version(d.NewVersion, d.New), d.Old, d.New)
}

// DiffSummary counts the keys that `diff` compared, for standard error.
type DiffSummary struct {
	Equal   int           `json:"equal"` // number of keys, like the next three fields
	Added   int           `json:"added"`
	Removed int           `json:"removed"`
	Changed int           `json:"changed"`
	Refused int           `json:"refused"` // keys that the store refused to read
	Elapsed time.Duration `json:"elapsed_ms"`
	Meanwhile
}

func (DiffSummary) diagnostic() {}

func (s DiffSummary) fields(o *objectWriter) { o.result("diff_summary", s) }

func (s DiffSummary) human(w *writer) {
	w.program("%d added, %d removed, %d changed, %d equal", s.Added, s.Removed, s.Changed, s.Equal)
	w.counts(count{s.Refused, "refused"})
	w.printf("; %s\n", seconds(s.Elapsed))
	s.Meanwhile.line(w)
}
