package store

import "time"

// An Entry is a key and its state. It belongs to the store, see the package comment.
//
// A million of them may be held. Hence there is one allocation for all bytes, versions are
// kept as the text that replies carry, and times as numbers.
type Entry struct {
	data     []byte // key, version, fence and value, one after the other
	deadline int64  // in microseconds since the Unix epoch; 0: never

	keyLen, versionLen, fenceLen uint32
	persist                      bool
}

// Key returns the key.
func (e *Entry) Key() []byte { return e.data[:e.keyLen:e.keyLen] }

// Version returns the version of the value, an HLC as text.
func (e *Entry) Version() []byte {
	end := e.keyLen + e.versionLen
	return e.data[e.keyLen:end:end]
}

// Fence returns the fencing token of the last write that had one, an HLC as it came, or an
// empty slice if the key is not fenced. It is visible here and nowhere in the protocol
// (protocol.md 4).
func (e *Entry) Fence() []byte {
	begin := e.keyLen + e.versionLen
	return e.data[begin : begin+e.fenceLen : begin+e.fenceLen]
}

// Value returns the value.
func (e *Entry) Value() []byte {
	return e.data[e.keyLen+e.versionLen+e.fenceLen : len(e.data) : len(e.data)]
}

// Persist tells whether the last write asked for the entry to be kept on disk.
func (e *Entry) Persist() bool { return e.persist }

// Expires returns when the key expires, to the microsecond; the zero time is never.
func (e *Entry) Expires() time.Time {
	if e.deadline == 0 {
		return time.Time{}
	}
	return time.UnixMicro(e.deadline)
}

// deadline is a time as an Entry has it. No key expires early: it is rounded up.
func deadline(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Microsecond - 1).UnixMicro()
}

// due tells whether the key has expired at a time in microseconds.
func (e *Entry) due(now int64) bool { return e.deadline != 0 && now >= e.deadline }

// inPlace is the largest entry, in bytes, that is rewritten in place. A larger one gets
// new memory, so that its parts need not be copied twice.
const inPlace = 4096

// write gives the entry its bytes, which may be parts of those it has. Where the old memory
// fits, and is not far too large, it is used again.
func (s *Store) write(e *Entry, key, version, fence, value []byte) {
	size := len(key) + len(version) + len(fence) + len(value)
	joined := s.joined[:0]
	if size > inPlace {
		joined = make([]byte, 0, size)
	}
	joined = append(append(append(append(joined, key...), version...), fence...), value...)
	e.keyLen, e.versionLen, e.fenceLen = uint32(len(key)), uint32(len(version)), uint32(len(fence))
	if size > inPlace {
		e.data = joined
		return
	}
	s.joined = joined
	if size <= cap(e.data) && cap(e.data) <= 2*size {
		e.data = append(e.data[:0], joined...)
		return
	}
	e.data = append([]byte(nil), joined...)
}
