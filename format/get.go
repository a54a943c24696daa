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
}

func (g Get) fields() object {
	return object{
		{"op", "get"},
		{"key", g.Key},
		{"found", g.Found},
		{"value", when(g.Found && !g.VersionOnly, string(g.Value))},
		{"version", versionField(g.Version)},
		{"rtt_ms", rtt(g.RTT)},
	}
}

func (g Get) human(dst []byte, s *style) []byte {
	if g.Many {
		dst = s.keyed(dst, g.Key)
	}
	switch {
	case !g.Found:
		return append(dst, "(nil)\n"...)
	case !g.VersionOnly:
		dst = append(AppendQuote(dst, g.Value), '\n')
	}
	return s.versionAndAge(dst, g.Version)
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
