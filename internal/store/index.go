package store

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"

	"github.com/tidwall/btree"
)

// An index holds the records. It finds them by key, walks them in the order of their keys, and
// returns the record that expires next.
//
// byHash finds a record by a hash of its key, because a map keyed by strings would store each key a second
// time. It is many tables, one for each first byte of a hash, so that none of them takes long to grow or to shrink.
//
// With a million keys, the B-tree (ordered) takes 7 bytes per key. Adding a key takes 0.5 µs in
// ascending order and 2 µs in random order. Sorting the keys for each SCAN would delay all other
// requests by a second.
type index struct {
	hash     func(key []byte) uint32
	arena    *arena
	byHash   [1 << 8]table
	ordered  *btree.BTreeG[ref] // by key
	expiries *btree.BTreeG[expiry]
	hint     btree.PathHint // speeds up the B-tree when keys are added in ascending order

	last   ref    // the result of the last find; 0 = no result, or the record may have moved
	wanted []byte // the key that wantedRef stands for
	buffer []byte // for encoding a record; reused

	prefetched byte // the sum of what prefetch has read, so that the compiler keeps the reads
}

// An expiry is a record and the time when the record expires. Records with the same expiry time are
// removed in the order of their keys.
type expiry struct {
	at  int64 // in microseconds since the Unix epoch
	ref ref
}

// maxKeptBlocks is the maximum number of blocks that an emptied index keeps for reuse.
const maxKeptBlocks = 64

// wantedRef is a ref that stands for the key in index.wanted, whether or not the index has that key.
const wantedRef ref = math.MaxUint32

func newIndex() *index {
	seed := maphash.MakeSeed()
	x := &index{hash: func(key []byte) uint32 { return uint32(maphash.Bytes(seed, key)) }}
	x.clear()
	return x
}

func (x *index) clear() {
	x.arena = newArena()
	clear(x.byHash[:])
	options := btree.Options{NoLocks: true}
	x.ordered = btree.NewBTreeGOptions(func(a, b ref) bool { return bytes.Compare(x.key(a), x.key(b)) < 0 }, options)
	x.expiries = btree.NewBTreeGOptions(func(a, b expiry) bool {
		return a.at < b.at || a.at == b.at && bytes.Compare(x.key(a.ref), x.key(b.ref)) < 0
	}, options)
	x.hint = btree.PathHint{}
	x.last = 0
}

const perKey, perExpiry = 28, 32 // estimated memory in the maps and trees, in bytes

// cost returns the estimated memory of all records and of the index itself, in bytes.
func (x *index) cost() int {
	return x.arena.used + perKey*x.len() + perExpiry*x.expiries.Len()
}

func (x *index) len() int { return x.ordered.Len() }

func (x *index) shard(hash uint32) *table { return &x.byHash[hash>>24] }

func (x *index) entry(r ref) Entry { return Entry{x.arena.bytes(r), x.arena.large(r)} }

func (x *index) key(r ref) []byte {
	if r == wantedRef {
		return x.wanted
	}
	return Entry{record: x.arena.bytes(r)}.Key()
}

// find returns the ref of a key's record, or 0.
func (x *index) find(key []byte) ref {
	if x.holds(x.last, key) {
		return x.last
	}
	hash := x.hash(key)
	x.last = x.shard(hash).find(hash, func(r ref) bool { return x.holds(r, key) })
	return x.last
}

// prefetch reads from the record with a key's hash, without waiting for a comparison of keys.
func (x *index) prefetch(key []byte) {
	hash := x.hash(key)
	if r := x.shard(hash).find(hash, func(ref) bool { return true }); r != 0 {
		x.prefetched += x.arena.bytes(r)[0]
	}
}

func (x *index) holds(r ref, key []byte) bool {
	return r != 0 && bytes.Equal(Entry{record: x.arena.bytes(r)}.Key(), key)
}

// put writes a key's record and returns its ref. It replaces the record at r, unless r is 0. The
// slices may alias the old record. put keeps a value of [Large] bytes or more, and copies a smaller one.
func (x *index) put(r ref, key, version, fence, value []byte, deadline int64, flags byte) ref {
	x.buffer = appendHead(x.buffer[:0], key, version, fence, len(value), deadline, flags)
	n := len(x.buffer) + len(value)
	if r != 0 {
		x.expire(r, false)
	}
	old := r
	if len(value) >= Large {
		r = x.arena.allocLarge(x.buffer, value)
	} else {
		if r == 0 || x.arena.large(r) != nil || !fits(n, len(x.arena.bytes(r))) {
			r = x.arena.alloc(n)
		}
		slot := x.arena.bytes(r)
		copy(slot[len(x.buffer):], value) // first, because the head may overwrite an old value in the same slot
		copy(slot, x.buffer)
	}
	if r != old {
		x.move(old, r)
	}
	x.expire(r, true)
	if cap(x.buffer) > maxSlot {
		x.buffer = nil
	}
	return r
}

// move updates the index after a key's record was written to r. It frees the record at old, unless
// old is 0.
func (x *index) move(old, r ref) {
	hash := x.hash(x.entry(r).Key())
	if old == 0 {
		x.shard(hash).add(hash, r)
	} else {
		x.shard(hash).replace(hash, old, r)
	}
	x.ordered.SetHint(r, &x.hint)
	if old != 0 {
		x.arena.free(old)
		x.last = 0
	}
}

// minSpare is the unused memory below which the index is not compacted, in bytes.
const minSpare = 1 << 20

// compact moves the records of some sparse blocks to other blocks, and so gives back the memory of the
// sparse ones, if more than half of the memory is unused.
func (x *index) compact() {
	const blocks = 4 // takes about half a millisecond
	for range blocks {
		if x.arena.memory-x.arena.used < x.arena.used+minSpare {
			return
		}
		x.compactBlock()
	}
}

func (x *index) compactBlock() {
	number := x.arena.sparse()
	if number == 0 {
		return
	}
	for _, old := range x.arena.records(number) {
		x.expire(old, false)
		r := x.arena.alloc(len(x.arena.bytes(old)))
		copy(x.arena.bytes(r), x.arena.bytes(old))
		x.move(old, r)
		x.expire(r, true)
	}
}

// remove removes a record. The record's bytes, except for the first four, stay valid until the next
// put.
func (x *index) remove(r ref) {
	e := x.entry(r)
	x.expire(r, false)
	x.ordered.DeleteHint(r, &x.hint)
	hash := x.hash(e.Key())
	x.shard(hash).remove(hash, r)
	x.arena.free(r)
	x.last = 0
	if x.len() == 0 && len(x.arena.blocks) > maxKeptBlocks {
		x.clear()
	}
}

// from calls yield for each record at or after key, in the order of the keys, until yield returns
// false.
func (x *index) from(key []byte, yield func(Entry) bool) {
	x.wanted = key
	x.ordered.Ascend(wantedRef, func(r ref) bool { return yield(x.entry(r)) })
	x.wanted = nil
}

// next returns the ref of the record that expires next, or 0.
func (x *index) next() ref {
	if x.expiries.Len() == 0 {
		return 0
	}
	first, _ := x.expiries.Min()
	return first.ref
}

// hasten sets the deadline of a record that has one, in microseconds since the Unix epoch.
func (x *index) hasten(r ref, deadline int64) {
	x.expire(r, false)
	binary.LittleEndian.PutUint64(x.arena.bytes(r)[headerSize:], uint64(deadline))
	x.expire(r, true)
}

// expire adds the record at r to x.expiries, or removes it from there if expires is false. It ignores a
// record without an expiry.
func (x *index) expire(r ref, expires bool) {
	at := x.entry(r).deadline()
	switch {
	case at == 0:
	case expires:
		x.expiries.Set(expiry{at, r})
	default:
		x.expiries.Delete(expiry{at, r})
	}
}
