package store

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// An arena holds the records of all keys. It keeps a million records in a few thousand blocks, so
// that the garbage collector tracks only the blocks.
//
// All slots of a block have the same size. When no slot of a block is in use, the arena usually
// releases the block's memory and reuses the block's number for a block of any slot size. Slots that
// records have outgrown therefore do not waste memory. A large record has its own block.
type arena struct {
	blocks []block          // by number; block 0 is not used, so that no ref is 0
	open   map[int][]uint32 // by slot size: the blocks that have a free slot
	unused []uint32         // numbers of blocks without memory
	limit  int              // maximum number of blocks
	used   int              // bytes of the slots that hold a record
	memory int              // bytes of all blocks
}

// A ref locates a record: a block number and the number of a slot in the block; 0 = no record.
type ref uint32

const (
	slotBits  = 12
	blockSize = minSlot << slotBits
	minSlot   = 16                   // size of the smallest slot, in bytes
	maxSlot   = blockSize / 8        // size of the largest slot in a shared block, in bytes
	maxBlocks = 1<<(32-slotBits) - 1 // the number after the last is reserved for wantedRef
)

type block struct {
	data  []byte
	large *[]byte // value of the only record, which data holds without its value; nil = not a large value
	size  int     // size of a slot, in bytes
	used  int     // number of slots that hold a record
	fresh int     // number of slots that have ever held a record; all later slots are free

	// freed is the head of the list of freed slots: 1 + the number of a slot; 0 = no slot. The first 4 bytes
	// of a freed slot hold the same kind of number for the next slot in the list.
	freed uint32
}

func newArena() *arena {
	return &arena{blocks: make([]block, 1), open: make(map[int][]uint32), limit: maxBlocks}
}

func (b *block) full() bool { return b.used == len(b.data)/b.size }

// slotSize returns the slot size for a record of n bytes, rounded up so that there are few sizes.
// The slot is at most an eighth larger than the record, except for records below 128 bytes.
func slotSize(n int) int {
	if n > maxSlot {
		return n
	}
	step := max(minSlot, 1<<bits.Len(uint(n-1))>>4)
	return (n + step - 1) / step * step
}

// fits reports whether a record of n bytes may stay in a slot of the given size. The slot may be up to
// a third too large, so that a record need not move when the counter in its version loses a digit.
func fits(n, slot int) bool { return n <= slot && slotSize(n) >= slot*3/4 }

// room returns the number of blocks that are not in use. Each record needs at most one. All blocks hold up to 64 GiB
// of small records or a million large ones.
func (a *arena) room() int { return a.limit - len(a.blocks) + len(a.unused) }

// large returns the value of a record if it is large, or nil.
func (a *arena) large(r ref) *[]byte { return a.blocks[r>>slotBits].large }

// size returns the size of a record's slot and its large value, in bytes, or 0 for no record.
func (a *arena) size(r ref) int { return a.blocks[r>>slotBits].size + a.blocks[r>>slotBits].outside() }

// outside returns the size of a large value, which is not in data.
func (b *block) outside() int {
	if b.large == nil {
		return 0
	}
	return len(*b.large)
}

// bytes returns the slot of a record, without a large value.
func (a *arena) bytes(r ref) []byte {
	b := &a.blocks[r>>slotBits]
	begin := int(r&(1<<slotBits-1)) * b.size
	return b.data[begin : begin+b.size : begin+b.size]
}

// allocLarge returns a slot for a record with a large value, which the arena keeps without copying it. head is
// the rest of the record.
func (a *arena) allocLarge(head, value []byte) ref {
	a.used += len(head) + len(value)
	return ref(a.newBlock(block{data: bytes.Clone(head), large: &value, size: len(head), used: 1}) << slotBits)
}

func (a *arena) alloc(n int) ref {
	size := slotSize(n)
	if size > maxSlot {
		a.used += size
		return ref(a.newBlock(block{data: make([]byte, size), size: size, used: 1}) << slotBits)
	}
	if len(a.open[size]) == 0 {
		a.open[size] = append(a.open[size], a.newBlock(block{data: make([]byte, blockSize), size: size}))
	}
	open := a.open[size]
	number := open[len(open)-1]
	b := &a.blocks[number]
	slot := uint32(b.fresh)
	if b.freed != 0 {
		slot = b.freed - 1
		b.freed = binary.LittleEndian.Uint32(b.data[int(slot)*size:])
	} else {
		b.fresh++
	}
	b.used++
	a.used += size
	if b.full() {
		a.open[size] = open[:len(open)-1]
	}
	return ref(number<<slotBits | slot)
}

// free releases a slot. It overwrites at most the slot's first four bytes; the slot's other bytes stay
// valid until the next alloc.
func (a *arena) free(r ref) {
	number, slot := uint32(r>>slotBits), uint32(r&(1<<slotBits-1))
	b := &a.blocks[number]
	if b.full() && b.size <= maxSlot && b.large == nil {
		a.open[b.size] = append(a.open[b.size], number)
	}
	b.used--
	a.used -= b.size + b.outside()
	open := a.open[b.size]
	if b.used > 0 || len(open) == 1 && b.large == nil { // keep the last open block of a size, even if empty
		binary.LittleEndian.PutUint32(b.data[int(slot)*b.size:], b.freed)
		b.freed = slot + 1
		return
	}
	if i := slices.Index(open, number); i >= 0 {
		a.open[b.size] = slices.Delete(open, i, i+1)
	}
	a.memory -= len(b.data) + b.outside()
	*b = block{}
	a.unused = append(a.unused, number)
}

// sparse returns the number of a block of which at most half is used, or 0. Each call looks at one block
// of each slot size.
func (a *arena) sparse() uint32 {
	for size, open := range a.open {
		if len(open) < 2 {
			continue
		}
		first := open[0]
		if b := &a.blocks[first]; b.used <= len(b.data)/size/2 {
			return first
		}
		copy(open, open[1:]) // the next call looks at the next block
		open[len(open)-1] = first
	}
	return 0
}

func (a *arena) records(number uint32) (refs []ref) {
	b := &a.blocks[number]
	free := make([]bool, b.fresh)
	for next := b.freed; next != 0; next = binary.LittleEndian.Uint32(b.data[int(next-1)*b.size:]) {
		free[next-1] = true
	}
	for slot := range b.fresh {
		if !free[slot] {
			refs = append(refs, ref(number<<slotBits|uint32(slot)))
		}
	}
	return refs
}

func (a *arena) newBlock(b block) uint32 {
	number := uint32(len(a.blocks))
	if last := len(a.unused) - 1; last >= 0 {
		number, a.unused = a.unused[last], a.unused[:last]
	} else {
		a.blocks = append(a.blocks, block{})
	}
	a.blocks[number] = b
	a.memory += len(b.data) + b.outside()
	return number
}
