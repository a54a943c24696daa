package format

import (
	"fmt"
	"time"
)

// Difference is a key that `diff` found.
type Difference struct {
	Change                 string // "added", "removed" or "changed"
	Key                    string
	Old, New               []byte        // nil: the key is missing on that side
	OldVersion, NewVersion Version       // nil: missing, or not known
	Fields                 []FieldChange // of two JSON values; empty for other values
}

// FieldChange is a field of a JSON value that changed. An empty text is a field that is
// missing.
type FieldChange struct {
	Path     string // such as .config.mode
	Old, New string // JSON
}

func (c FieldChange) fields() object {
	return object{{"path", c.Path}, {"old", when(c.Old != "", jsonText(c.Old))}, {"new", when(c.New != "", jsonText(c.New))}}
}

// path returns the path for the human output.
func (c FieldChange) path() string { return string(appendText(nil, c.Path)) }

// arrow returns the values of a field, as in `"auto" → "manual"`.
func (c FieldChange) arrow() string { return fieldText(c.Old) + " → " + fieldText(c.New) }

// fieldText returns a JSON value for the human output.
func fieldText(value string) string {
	if value == "" {
		return "(none)"
	}
	return string(appendJSONText(nil, value))
}

func (d Difference) fields() object {
	fields := make(list, len(d.Fields))
	for i, c := range d.Fields {
		fields[i] = c.fields()
	}
	return object{
		{"op", "diff"},
		{"change", d.Change},
		{"key", d.Key},
		{"old", when(d.Old != nil, string(d.Old))},
		{"new", when(d.New != nil, string(d.New))},
		{"old_version", versionField(d.OldVersion)},
		{"version", versionField(d.NewVersion)},
		{"fields", when(len(fields) > 0, fields)},
	}
}

// human writes + for a key that was added, - for one that was removed, and ~ for one that
// changed, with a line for each field of a JSON value.
func (d Difference) human(dst []byte, s *style) []byte {
	mark := map[string]string{"added": "+ ", "removed": "- "}[d.Change]
	if mark == "" {
		mark = "~ "
	}
	word := Word(d.Key)
	dst = append(append(dst, mark...), s.key.Sprint(word)...)
	switch {
	case len(d.Fields) > 0:
		for _, c := range d.Fields {
			dst = append(append(dst, "\n    "...), c.path()...)
			dst = append(append(dst, "  "...), c.arrow()...)
		}
	case d.Old == nil:
		dst = append(append(dst, "  "...), Brief(d.New)...)
	case d.New == nil:
		dst = append(append(dst, "  "...), Brief(d.Old)...)
	default:
		dst = append(append(dst, "  "...), Brief(d.Old)+" → "+Brief(d.New)...)
	}
	return append(dst, '\n')
}

// raw writes the change, the key, the old and the new version, and the old and the new value.
// What is missing is a minus, and nothing in place of a value.
func (d Difference) raw(dst []byte) []byte {
	dst = AppendEscape(append(append(dst, d.Change...), '\t'), d.Key)
	for _, side := range []struct {
		v    Version
		here bool
	}{{d.OldVersion, d.Old != nil}, {d.NewVersion, d.New != nil}} {
		absent := "-"
		if side.here {
			absent = "?"
		}
		dst = appendVersion(append(dst, '\t'), side.v, absent)
	}
	dst = AppendEscape(append(dst, '\t'), d.Old)
	return append(AppendEscape(append(dst, '\t'), d.New), '\n')
}

// DiffSummary counts what `diff` has compared, for standard error.
type DiffSummary struct {
	Equal, Added, Removed, Changed int // keys
	Refused                        int // keys that could not be read
	Elapsed                        time.Duration
	Meanwhile
}

func (s DiffSummary) fields() object {
	return append(object{
		{"op", "diff_summary"},
		{"equal", s.Equal},
		{"added", s.Added},
		{"removed", s.Removed},
		{"changed", s.Changed},
		{"refused", s.Refused},
		{"elapsed_ms", milliseconds(s.Elapsed)},
	}, s.Meanwhile.fields()...)
}

func (s DiffSummary) human(dst []byte, st *style) []byte {
	return s.text(dst, st.faint.Sprint("sscli:"))
}

func (s DiffSummary) raw(dst []byte) []byte { return s.text(dst, "sscli:") }

func (s DiffSummary) text(dst []byte, prefix string) []byte {
	dst = fmt.Appendf(append(dst, prefix...), " %d added, %d removed, %d changed, %d equal", s.Added, s.Removed, s.Changed, s.Equal)
	if s.Refused > 0 {
		dst = fmt.Appendf(dst, ", %d refused", s.Refused)
	}
	dst = fmt.Appendf(dst, "; %s\n", seconds(s.Elapsed))
	return s.Meanwhile.text(dst, prefix)
}
