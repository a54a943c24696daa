package format

import "time"

// Set is the result of `set`.
type Set struct {
	Key     string        `json:"key"`
	Applied bool          `json:"applied"`
	Reason  string        `json:"reason,omitzero"` // why the key was not set: "exists" (NX) or "differs" (NEX)
	Version Version       `json:"version"`
	RTT     time.Duration `json:"rtt_ms,omitzero"` // 0 = not measured
}

func (r Set) fields(o *objectWriter) { o.result("set", r) }

func (r Set) human(w *writer) {
	if r.Applied {
		w.print("OK\n")
	} else {
		w.answer("not set: "+meaning(r.Reason), -1)
	}
	w.version(r.Version)
}

func (r Set) raw(w *writer) {
	if r.Applied {
		w.record("OK", r.Version)
	} else {
		w.record(-1, r.Version)
	}
}

// meaning returns, in words, the reason why a key was not set or deleted.
func meaning(reason string) string {
	switch reason {
	case "exists":
		return "the key exists"
	case "differs":
		return "the key holds another value"
	case "missing":
		return "the key is missing"
	case "changed":
		return "another client changed the key"
	}
	return Escape(reason)
}
