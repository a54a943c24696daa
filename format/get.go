package format

import "time"

// Get is the result of `get` for one key.
type Get struct {
	Key         string
	Found       bool
	Value       []byte
	Version     Version       // nil: missing key, or not sent by the store
	RTT         time.Duration // 0: not measured
	Many        bool          // one of several keys: name the key
	VersionOnly bool          // print the version without the value
	Show        Show          // how the human form shows the value
}

func (g Get) fields() object { return collect(g) }

func (g Get) members(m *members) {
	m.text("op", "get")
	m.text("key", g.Key)
	m.bool("found", g.Found)
	if g.Found && !g.VersionOnly {
		m.bytes("value", g.Value)
	}
	m.version("version", g.Version)
	m.rtt("rtt_ms", g.RTT)
}

func (g Get) human(dst []byte, s *style) []byte {
	switch {
	case g.Many:
		return s.row(dst, g)
	case !g.Found:
		return append(dst, "(nil)\n"...)
	case !g.VersionOnly:
		dst = s.value(dst, g.Value, g.Show)
	}
	return s.versionAndAge(dst, g.Version)
}

// cells are the key, the version where there is room for it, its age, and the value.
func (g Get) cells(s *style) []cell {
	version, since := "", ""
	switch {
	case none(g.Version) && g.Found:
		version = "version unknown"
	case !none(g.Version):
		version, since = string(appendVersion(nil, g.Version, "")), age(s.now().Sub(g.Version.Time()))
	}
	row := []cell{{text: Word(g.Key), paint: s.key}}
	if g.VersionOnly || s.isWide() {
		row = append(row, cell{text: version, paint: s.faint, least: versionColumns})
	}
	row = append(row, cell{text: since, paint: s.faint, least: ageColumns})
	if !g.Found {
		return append(row, cell{text: "(nil)"})
	}
	if !g.VersionOnly {
		row = append(row, cell{text: ValueLine(g.Value, g.Show)})
	}
	return row
}

func (g Get) raw(dst []byte) []byte {
	absent := "-"
	if g.Found {
		absent = "?"
	}
	switch {
	case g.Many:
		dst = append(AppendEscape(dst, g.Key), '\t')
		dst = appendVersion(dst, g.Version, absent)
		if !g.VersionOnly {
			dst = AppendEscape(append(dst, '\t'), g.Value)
		}
		return append(dst, '\n')
	case !g.Found:
		return dst
	case g.VersionOnly:
		return append(appendVersion(dst, g.Version, absent), '\n')
	}
	return append(dst, g.Value...)
}
