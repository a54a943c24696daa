package store

import (
	"encoding/binary"
	"time"
)

// An Entry is a key and its state. It is a view of the store's memory: see the package
// comment for how long it is valid.
type Entry struct {
	record []byte
	large  *[]byte // the value, if it is not in record
}

// A record is the encoding of a key and its state:
//
//	 4 bytes  length of the key
//	 4        length of the value
//	 2        length of the fencing token
//	 1        length of the version
//	 1        flags
//	(8        expiry, in microseconds since the Unix epoch)
//	key, version, fencing token, value
//
// A value of [Large] bytes or more is not in the record. It never changes, and may have other owners.
//
// The expiry is present only with flagExpires. The version and the token are text, as in MQTT
// properties. Numbers are little endian.
const headerSize = 12

const (
	flagPersist = 1 << iota
	flagExpires
	flagKept // Options.Keep returned true

	markShift = 6 // the two highest bits hold Write.Mark
)

// appendHead appends the record of a key, except for the value. size is the length of the value.
// appendHead sets flagExpires if deadline is not 0.
func appendHead(dst, key, version, fence []byte, size int, deadline int64, flags byte) []byte {
	if deadline != 0 {
		flags |= flagExpires
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(key)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(fence)))
	dst = append(dst, byte(len(version)), flags)
	if deadline != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(deadline))
	}
	return append(append(append(dst, key...), version...), fence...)
}

func (e Entry) flags() byte { return e.record[headerSize-1] }

func (e Entry) cut(begin, n int) []byte { return e.record[begin : begin+n : begin+n] }

// key returns the offset and length of the key in the record. The methods version, fence and value
// return the offsets and lengths of the other parts.
func (e Entry) key() (begin, n int) {
	begin = headerSize
	if e.flags()&flagExpires != 0 {
		begin += 8
	}
	return begin, int(binary.LittleEndian.Uint32(e.record))
}

func (e Entry) version() (begin, n int) {
	begin, n = e.key()
	return begin + n, int(e.record[10])
}

func (e Entry) fence() (begin, n int) {
	begin, n = e.version()
	return begin + n, int(binary.LittleEndian.Uint16(e.record[8:]))
}

func (e Entry) value() (begin, n int) {
	begin, n = e.fence()
	return begin + n, int(binary.LittleEndian.Uint32(e.record[4:]))
}

// Key returns the key.
func (e Entry) Key() []byte { return e.cut(e.key()) }

// Version returns the version of the value, an HLC as text.
func (e Entry) Version() []byte { return e.cut(e.version()) }

// Fence returns the fencing token of the last write that had one, as the client sent it, or an
// empty slice if the key is not fenced. Clients cannot read the token (protocol.md 4).
func (e Entry) Fence() []byte { return e.cut(e.fence()) }

// Value returns the value. A value of [Large] bytes or more stays valid, and must not be changed.
func (e Entry) Value() []byte {
	if e.large != nil {
		return *e.large
	}
	return e.cut(e.value())
}

// Persist reports whether the last write asked to keep the entry on disk.
func (e Entry) Persist() bool { return e.flags()&flagPersist != 0 }

// Mark returns the Mark of the last [Write] of the key, or 0 if the last write was a request.
func (e Entry) Mark() byte { return e.flags() >> markShift }

func (e Entry) kept() bool { return e.flags()&flagKept != 0 }

// Expires returns when the key expires, to the microsecond; the zero time means never.
func (e Entry) Expires() time.Time {
	if at := e.deadline(); at != 0 {
		return time.UnixMicro(at)
	}
	return time.Time{}
}

// deadline returns when the key expires, in microseconds since the Unix epoch; 0 = never.
func (e Entry) deadline() int64 {
	if e.flags()&flagExpires == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(e.record[headerSize:]))
}

// due reports whether the key has expired at now, in microseconds since the Unix epoch.
func (e Entry) due(now int64) bool {
	at := e.deadline()
	return at != 0 && now >= at
}

// deadline converts an expiry to microseconds since the Unix epoch, rounded up so that no key
// expires early. It returns 0 for the zero time.
func deadline(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Microsecond - 1).UnixMicro()
}
