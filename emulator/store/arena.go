package store

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// An arena is memory for records, one for each key, of all sizes and often rewritten. It holds
// a million records in a few thousand blocks, and the garbage collector sees only the blocks.
//
// A block has slots of one size. A block without a used slot can become one of another size,
// so that records which all grow do not waste their old memory. A large record has its own
// block.
type arena struct {
	blocks []block          // the first is not used
	open   map[int][]uint32 // by slot size: the blocks that have a free slot
	unused []uint32         // numbers of blocks without memory
	limit  int              // maximum number of blocks
	used   int              // bytes of the slots that hold a record
}

// A ref locates a record: the number of the block, and of the slot in it. 0 is no record.
type ref uint32

const (
	slotBits  = 12
	blockSize = minSlot << slotBits
	minSlot   = 16                   // bytes of a slot
	maxSlot   = blockSize / 8        // bytes of a slot in a block with others
	maxBlocks = 1<<(32-slotBits) - 1 // wantedRef has the last number
)

type block struct {
	data  []byte
	size  int    // of a slot
	used  int    // slots that hold a record
	fresh int    // slots that ever held a record; those after them are free too
	freed uint32 // number plus one of a slot that was freed and begins with the number of the next; 0: none
}

func newArena() *arena {
	return &arena{blocks: make([]block, 1), open: make(map[int][]uint32), limit: maxBlocks}
}

func (b *block) full() bool { return b.used == len(b.data)/b.size }

// slotSize returns how large the slot for a record is: at most an eighth larger, so that
// there are few sizes.
func slotSize(n int) int {
	if n > maxSlot {
		return n
	}
	step := max(minSlot, 1<<bits.Len(uint(n-1))>>4)
	return (n + step - 1) / step * step
}

// fits reports whether a record of n bytes may stay in a slot of that size. A slot may be a third
// too large, since the counter in a version has one digit in one write and four in the next.
func fits(n, slot int) bool { return n <= slot && slotSize(n) >= slot*3/4 }

// exhausted reports whether there may be no room for a record: after 64 GiB of small ones, or a
// million large ones.
func (a *arena) exhausted() bool { return len(a.blocks) == a.limit && len(a.unused) == 0 }

// bytes returns the slot of a record.
func (a *arena) bytes(r ref) []byte {
	b := &a.blocks[r>>slotBits]
	begin := int(r&(1<<slotBits-1)) * b.size
	return b.data[begin : begin+b.size : begin+b.size]
}

// alloc returns a slot for a record of n bytes.
func (a *arena) alloc(n int) ref {
	size := slotSize(n)
	if size > maxSlot {
		number := a.newBlock(size, size)
		a.blocks[number].used = 1
		a.used += size
		return ref(number << slotBits)
	}
	if len(a.open[size]) == 0 {
		a.open[size] = append(a.open[size], a.newBlock(blockSize, size))
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

// free releases a slot. Its bytes, except for the first four, stay as they are until the next
// alloc.
func (a *arena) free(r ref) {
	number, slot := uint32(r>>slotBits), uint32(r&(1<<slotBits-1))
	b := &a.blocks[number]
	if b.full() && b.size <= maxSlot {
		a.open[b.size] = append(a.open[b.size], number)
	}
	b.used--
	a.used -= b.size
	open := a.open[b.size]
	if b.used > 0 || len(open) == 1 { // one block of a size is kept, used or not
		binary.LittleEndian.PutUint32(b.data[int(slot)*b.size:], b.freed)
		b.freed = slot + 1
		return
	}
	if i := slices.Index(open, number); i >= 0 {
		a.open[b.size] = slices.Delete(open, i, i+1)
	}
	*b = block{}
	a.unused = append(a.unused, number)
}

func (a *arena) newBlock(memory, size int) uint32 {
	number := uint32(len(a.blocks))
	if last := len(a.unused) - 1; last >= 0 {
		number, a.unused = a.unused[last], a.unused[:last]
	} else {
		a.blocks = append(a.blocks, block{})
	}
	a.blocks[number] = block{data: make([]byte, memory), size: size}
	return number
}
