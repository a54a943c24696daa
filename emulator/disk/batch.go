package disk

import (
	"crypto/sha256"

	bolt "go.etcd.io/bbolt"
)

// A Batch is changes that are committed together. Later changes of a key replace earlier
// ones. The zero value is empty.
type Batch struct {
	changes []change
	data    []byte // keys and records
	clock   int64
}

// A change is where in data a key and its record are. A deletion has no record.
type change struct {
	begin, record, end int
	long               bool
}

// Put writes a record in place of the one that the key has. The batch copies it.
func (b *Batch) Put(r Record) {
	c := b.begin(r.Key)
	b.data = appendRecord(b.data, r, c.long)
	c.end = len(b.data)
	b.changes = append(b.changes, c)
}

// Delete removes the record of a key, if there is one.
func (b *Batch) Delete(key []byte) { b.changes = append(b.changes, b.begin(key)) }

// Clock keeps a wall clock in milliseconds, after which no version of the store lies.
func (b *Batch) Clock(wall int64) { b.clock = wall }

// Empty tells whether there is nothing to commit.
func (b *Batch) Empty() bool { return len(b.changes) == 0 && b.clock == 0 }

// Len returns the number of changes.
func (b *Batch) Len() int { return len(b.changes) }

// roomyBatch is how many bytes of memory a batch keeps for the next one.
const roomyBatch = 1 << 20

// Reset empties the batch.
func (b *Batch) Reset() {
	if cap(b.data) > roomyBatch {
		*b = Batch{}
		return
	}
	*b = Batch{changes: b.changes[:0], data: b.data[:0]}
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

// filedUnder is the key of the record of a long key.
func filedUnder(key []byte) []byte {
	sum := sha256.Sum256(key)
	return sum[:]
}
