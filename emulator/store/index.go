package store

import (
	"bytes"
	"hash/maphash"

	"github.com/tidwall/btree"
)

// index finds entries by key and walks them in the order of the keys.
//
// The map is by a hash of the key and not by the key: a map of strings would hold each
// key a second time. Two keys of the same hash are all but impossible; the later one of them is
// in others.
type index struct {
	hash    func(key []byte) uint64
	byHash  map[uint64]*Entry
	others  map[string]*Entry
	ordered *btree.BTreeG[*Entry]
}

func newIndex() *index {
	seed := maphash.MakeSeed()
	x := &index{hash: func(key []byte) uint64 { return maphash.Bytes(seed, key) }}
	x.clear()
	return x
}

// clear empties the index and gives its memory back.
func (x *index) clear() {
	x.byHash, x.others = make(map[uint64]*Entry), make(map[string]*Entry)
	x.ordered = btree.NewBTreeGOptions(func(a, b *Entry) bool { return bytes.Compare(a.Key(), b.Key()) < 0 }, btree.Options{NoLocks: true})
}

func (x *index) len() int { return len(x.byHash) + len(x.others) }

// find returns the entry of a key, or nil.
func (x *index) find(key []byte) *Entry {
	if e := x.byHash[x.hash(key)]; e != nil && bytes.Equal(e.Key(), key) {
		return e
	}
	return x.others[string(key)]
}

// add takes in an entry whose key is new.
func (x *index) add(e *Entry) {
	if hash := x.hash(e.Key()); x.byHash[hash] == nil {
		x.byHash[hash] = e
	} else {
		x.others[string(e.Key())] = e
	}
	x.ordered.Set(e)
}

// remove takes out an entry that is there.
func (x *index) remove(e *Entry) {
	if hash := x.hash(e.Key()); x.byHash[hash] == e {
		delete(x.byHash, hash)
	} else {
		delete(x.others, string(e.Key()))
	}
	x.ordered.Delete(e)
	if x.len() == 0 {
		x.clear() // maps do not shrink
	}
}

// from calls yield with the entries from a key on, in the order of the keys, until it
// returns false.
func (x *index) from(key []byte, yield func(*Entry) bool) {
	x.ordered.Ascend(&Entry{data: key, keyLen: uint32(len(key))}, yield)
}
