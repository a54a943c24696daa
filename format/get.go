package format

import "time"

// Get is the result of `get` for one key.
type Get struct {
	Key         string
	Found       bool
	Value       []byte
	Version     Version       // zero = the key is missing, or the store sent no version
	RTT         time.Duration // 0 = not measured
	Many        bool          // one of several results: show the key
	VersionOnly bool          // print the version without the value
	Show        Show          // how the human form shows the value
}

func (g Get) fields(o *objectWriter) {
	o.add("op", "get")
	o.add("key", g.Key)
	o.add("found", g.Found)
	o.add("value", when(g.Found && !g.VersionOnly, g.Value))
	o.add("version", g.Version)
	o.add("rtt_ms", nonZero(g.RTT))
}

func (g Get) human(w *writer) {
	switch {
	case g.Many:
		w.row(g)
		return
	case !g.Found:
		w.print("(nil)\n")
		return
	case !g.VersionOnly:
		w.value(g.Value, g.Show)
	}
	w.versionAndAge(g.Version)
}

// cells returns the key, the version, its age, and the value.
func (g Get) cells(s *style) []cell {
	version, since := "", ""
	switch {
	case g.Version.IsZero() && g.Found:
		version = "version unknown"
	case !g.Version.IsZero():
		version, since = versionText(g.Version, ""), Age(s.now().Sub(g.Version.Time()))
	}
	row := []cell{
		{text: Word(g.Key), paint: s.key},
		{text: version, paint: s.faint, least: versionColumns, keep: true},
		{text: since, paint: s.faint, least: ageColumns},
	}
	if !g.Found {
		return append(row, cell{text: "(nil)"})
	}
	if !g.VersionOnly {
		row = append(row, cell{text: ValueLine(g.Value, g.Show)})
	}
	return row
}

func (g Get) raw(w *writer) {
	absent := "-"
	if g.Found {
		absent = "?"
	}
	version := versionOr(g.Version, absent)
	switch {
	case g.Many && g.VersionOnly:
		w.record(g.Key, version)
	case g.Many:
		w.record(g.Key, version, g.Value)
	case !g.Found:
	case g.VersionOnly:
		w.record(version)
	default:
		w.out = append(w.out, g.Value...)
	}
}
