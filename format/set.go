package format

import "time"

// Set is the result of `set`.
type Set struct {
	Key     string        `json:"key"`
	Applied bool          `json:"applied"`
	Reason  string        `json:"reason,omitzero"` // why it was not applied: "exists" (NX) or "differs" (NEX)
	Version Version       `json:"version"`
	RTT     time.Duration `json:"rtt_ms,omitzero"` // 0: not measured
}

func (r Set) fields(o *objectWriter) { o.result("set", r) }

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
		return appendRecord(dst, "OK", r.Version)
	}
	return appendRecord(dst, -1, r.Version)
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
