package format

import "time"

// Set is the result of `set`.
type Set struct {
	Key     string
	Applied bool
	Reason  string // if not applied: "exists" (NX) or "differs" (NEX)
	Version Version
	RTT     time.Duration // 0: not measured
}

func (r Set) fields() object { return collect(r) }

func (r Set) members(m *members) {
	m.text("op", "set")
	m.text("key", r.Key)
	m.bool("applied", r.Applied)
	if !r.Applied && r.Reason != "" {
		m.text("reason", r.Reason)
	}
	m.version("version", r.Version)
	m.rtt("rtt_ms", r.RTT)
}

func (r Set) human(dst []byte, s *style) []byte {
	if r.Applied {
		dst = append(dst, "OK\n"...)
	} else {
		dst = s.answer(dst, "not set: "+meaning(r.Reason), -1)
	}
	return s.version(dst, r.Version)
}

func (r Set) raw(dst []byte) []byte {
	if r.Applied {
		dst = append(dst, "OK\t"...)
	} else {
		dst = append(dst, "-1\t"...)
	}
	return append(appendVersion(dst, r.Version, "-"), '\n')
}

// meaning explains the reason of a "no".
func meaning(reason string) string {
	switch reason {
	case "exists":
		return "the key exists"
	case "differs":
		return "the key holds another value"
	case "missing":
		return "the key is missing"
	}
	return Escape(reason)
}
