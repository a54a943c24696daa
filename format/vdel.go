package format

import "time"

// VDel is the result of `vdel`.
type VDel struct {
	Key     string
	Deleted bool
	Found   bool // with Deleted false: the key holds another value, and is not missing
	Version Version
	RTT     time.Duration // zero: not measured
}

// answer is what the store says: 1 deleted, 0 missing, -1 the value differs.
func (v VDel) answer() (n int64, reason string) {
	switch {
	case v.Deleted:
		return 1, ""
	case v.Found:
		return -1, "differs"
	}
	return 0, "missing"
}

func (v VDel) fields(o *objectWriter) {
	n, reason := v.answer()
	deletion(o, "vdel", v.Key, n, reason, v.Version, v.RTT)
}

func (v VDel) human(dst []byte, s *style) []byte {
	n, reason := v.answer()
	return s.deletion(dst, n, reason, v.Version)
}

func (v VDel) raw(dst []byte) []byte {
	n, _ := v.answer()
	return appendRecord(dst, n, v.Version)
}

// deletion appends what became of a key, and the version of the reply.
func (s *style) deletion(dst []byte, n int64, reason string, v Version) []byte {
	return s.version(s.answer(dst, deleted(reason), n), v)
}

// deleted says what became of a key; reason is why it was not deleted, or empty.
func deleted(reason string) string {
	if reason == "" {
		return "deleted"
	}
	return "not deleted: " + meaning(reason)
}

// deletion writes the object of a command that deletes a key, or does not.
func deletion(o *objectWriter, op, key string, n int64, reason string, version Version, took time.Duration) {
	o.add("op", op)
	o.add("key", key)
	o.add("deleted", n > 0)
	o.add("count", n)
	o.add("reason", nonEmpty(reason))
	o.add("version", version)
	o.add("rtt_ms", rtt(took))
}
