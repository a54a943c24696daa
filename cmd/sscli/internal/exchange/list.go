package exchange

import (
	"crypto/sha256"
	"encoding/binary"
)

// A Digest identifies bytes by half of their SHA-256.
type Digest [sha256.Size / 2]byte

// DigestOf returns the digest of text.
func DigestOf(text []byte) Digest {
	sum := sha256.Sum256(text)
	return Digest(sum[:])
}

// A List is a list of keys, each with a digest. It needs about 17 bytes more than the name of each key, and
// has few pointers for the garbage collector to follow. The zero value is empty.
type List struct {
	blocks [][]byte // for each key: the length of its name, the name, and the digest
	len    int
}

const listBlock = 64 << 10 // bytes; the list grows by blocks of this size, so that growing copies nothing

// Add appends a key.
func (l *List) Add(key string, d Digest) {
	need := binary.MaxVarintLen64 + len(key) + len(d)
	last := len(l.blocks) - 1
	if last < 0 || cap(l.blocks[last])-len(l.blocks[last]) < need {
		l.blocks = append(l.blocks, make([]byte, 0, max(listBlock, need)))
		last++
	}
	b := binary.AppendUvarint(l.blocks[last], uint64(len(key)))
	l.blocks[last] = append(append(b, key...), d[:]...)
	l.len++
}

// Len returns the number of keys.
func (l *List) Len() int { return l.len }

// Read returns a reader at the beginning of the list.
func (l *List) Read() ListReader { return ListReader{blocks: l.blocks} }

// A ListReader returns the keys of a [List] one after the other.
type ListReader struct {
	blocks [][]byte // the blocks after rest
	rest   []byte   // the keys of a block that Next has not returned yet
}

// Next returns the next key and its digest. ok is false at the end of the list.
func (r *ListReader) Next() (key string, d Digest, ok bool) {
	if len(r.rest) == 0 {
		if len(r.blocks) == 0 {
			return "", d, false
		}
		r.rest, r.blocks = r.blocks[0], r.blocks[1:]
	}
	n, size := binary.Uvarint(r.rest)
	name := r.rest[size:][:n]
	rest := r.rest[size+len(name):]
	r.rest = rest[copy(d[:], rest):]
	return string(name), d, true
}

// Seen is a set of keys that takes the same memory for each, however long it is: it holds digests.
type Seen map[Digest]struct{}

// Add adds a key. It returns false if the key is in the set already.
func (s Seen) Add(key string) bool {
	d := DigestOf([]byte(key))
	if _, known := s[d]; known {
		return false
	}
	s[d] = struct{}{}
	return true
}

// Has reports whether a key is in the set.
func (s Seen) Has(key string) bool {
	_, known := s[DigestOf([]byte(key))]
	return known
}
