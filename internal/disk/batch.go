package disk

import (
	"bytes"
	"crypto/sha256"

	bolt "go.etcd.io/bbolt"
)

// A Batch holds changes that are committed together. A later change of a key replaces an earlier
// one. The zero value is empty.
type Batch struct {
	changes []change
	data    []byte // keys and records
	large   int    // total size of the values that are not in data, in bytes
	clock   int64
}

// A change is a key and its new record, as offsets in the batch's data. A deletion has no record.
type change struct {
	begin, record, end int
	long               bool    // the key is too long for bbolt: see filedUnder
	large              *Record // the record, if it has a large value; nil = it is in data, or this is a deletion
}

// Large is the size, in bytes, of the smallest value that a batch does not copy. Whoever fills a batch may have
// locked a store meanwhile.
const Large = 1 << 20

// Put replaces or adds the record of r.Key. The batch copies r, except a value of Large bytes or more, which must not
// change until the batch is committed.
func (b *Batch) Put(r Record) {
	c := b.begin(r.Key)
	if len(r.Value) < Large {
		b.data = appendRecord(b.data, r, c.long)
		c.end = len(b.data)
	} else {
		own := r
		own.Key, own.Version, own.Fence = bytes.Clone(r.Key), bytes.Clone(r.Version), bytes.Clone(r.Fence)
		c.large = &own
		b.large += len(r.Value)
	}
	b.changes = append(b.changes, c)
}

// encoded returns the record of a change. It is empty if the change is a deletion.
func (b *Batch) encoded(c *change) []byte {
	if r := c.large; r != nil {
		const rest = 64 // maximum size of the other fields
		return appendRecord(make([]byte, 0, rest+len(r.Key)+len(r.Version)+len(r.Fence)+len(r.Value)), *r, c.long)
	}
	return b.data[c.record:c.end]
}

// Delete removes the record of a key, if there is one. The batch copies the key.
func (b *Batch) Delete(key []byte) { b.changes = append(b.changes, b.begin(key)) }

// Clock sets the wall clock that the batch writes to the file: an upper limit for the wall clocks
// of all versions in the store, in milliseconds since the Unix epoch.
func (b *Batch) Clock(wall int64) { b.clock = wall }

// Empty reports whether there is nothing to commit.
func (b *Batch) Empty() bool { return len(b.changes) == 0 && b.clock == 0 }

// Len returns the number of changes.
func (b *Batch) Len() int { return len(b.changes) }

// Size returns the memory of the batch, in bytes, including the values that it has not copied.
func (b *Batch) Size() int {
	const perChange = 40
	return len(b.changes)*perChange + len(b.data) + b.large
}

func (b *Batch) begin(key []byte) change {
	c := change{begin: len(b.data), long: len(key) > bolt.MaxKeySize}
	if c.long {
		key = filedUnder(key)
	}
	b.data = append(b.data, key...)
	c.record, c.end = len(b.data), len(b.data)
	return c
}

// filedUnder returns the bbolt key, a SHA-256 hash, for a key that is too long for bbolt.
func filedUnder(key []byte) []byte {
	sum := sha256.Sum256(key)
	return sum[:]
}
