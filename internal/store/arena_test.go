package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestSlotSizes(t *testing.T) {
	sizes := make(map[int]bool)
	for n := 1; n <= maxSlot; n++ {
		size := slotSize(n)
		if size < n || size > n+max(minSlot-1, n/8) || size%minSlot != 0 || size > maxSlot {
			t.Fatalf("a record of %d bytes has a slot of %d", n, size)
		}
		sizes[size] = true
	}
	if len(sizes) > 80 {
		t.Errorf("there are %d sizes of slots", len(sizes))
	}
	if size := slotSize(maxSlot + 1); size != maxSlot+1 {
		t.Errorf("a large record has a slot of %d bytes", size)
	}
}

// TestArenaIsUsedAgain: the memory of records that all grow, again and again, is reused.
func TestArenaIsUsedAgain(t *testing.T) {
	const records = 10_000
	a := newArena()
	refs := make([]ref, records)
	memory := func() (n int) {
		for _, b := range a.blocks {
			n += len(b.data)
		}
		return n
	}
	for size := 100; size < 2000; size += size / 4 {
		for i, old := range refs {
			refs[i] = a.alloc(size)
			if old != 0 {
				a.free(old)
			}
		}
		if got, most := memory(), records*slotSize(size)*11/10+80*blockSize; got > most {
			t.Errorf("%d records of %d bytes take %d bytes, want at most %d", records, size, got, most)
		}
	}
	for _, r := range refs {
		a.free(r)
	}
	if got := memory(); got > 20*blockSize {
		t.Errorf("no records take %d bytes", got)
	}
}

func TestArenaExhausted(t *testing.T) {
	a := newArena()
	a.limit = 3
	for i := range 2 {
		if a.room() == 0 {
			t.Fatalf("exhausted after %d blocks", i)
		}
		a.alloc(maxSlot + 1)
	}
	if a.room() > 0 {
		t.Error("not exhausted")
	}
	a.free(1 << slotBits)
	if a.room() == 0 {
		t.Error("exhausted with a block that is free")
	}
}

// TestExhaustedStore: an exhausted store refuses writes but executes other requests.
func TestExhaustedStore(t *testing.T) {
	s := New(Options{})
	do := func(words, want string) {
		t.Helper()
		var payload bytes.Buffer
		split := strings.Fields(words)
		fmt.Fprintf(&payload, "*%d\r\n", len(split))
		for _, w := range split {
			fmt.Fprintf(&payload, "$%d\r\n%s\r\n", len(w), w)
		}
		got := string(s.Do(&Request{Payload: payload.Bytes(), Timestamp: []byte("1:0:c")}, nil).Payload)
		if got != want {
			t.Errorf("%s: got %q, want %q", words, got, want)
		}
	}
	do("SET k v", "+OK\r\n")
	s.index.arena.limit = len(s.index.arena.blocks)
	do("SET k w", "-ERR the quota has been exceeded\r\n")
	do("GET k", "$1\r\nv\r\n")
	do("DEL k", ":1\r\n")
}

// FuzzIndex: after any puts and removals, of any sizes, the index holds the same as a map, in the order of
// the keys and in the order of expiry. All keys share a few hashes.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 10, 1, 20, 0, 200, 2, 0, 1, 10})
	f.Add(bytes.Repeat([]byte{3, 255, 4, 254, 5, 253, 3, 0, 4, 0, 9, 31}, 20))
	f.Add(bytes.Repeat([]byte{16 * 3, 9, 1, 9, 2, 250, 3, 0, 1, 9, 3, 9, 16, 0, 1, 9}, 20))
	f.Fuzz(func(t *testing.T, ops []byte) {
		type state struct {
			value    string
			deadline int64
		}
		x, model := newIndex(), make(map[string]state)
		x.hash = func(key []byte) uint32 { return uint32(key[len(key)-1]%3)*7 + 13 } // of 16 places, 4, 11 and 13
		for step := byte('a'); len(ops) >= 2; ops, step = ops[2:], step+1 {
			key, size := fmt.Sprint("key", ops[0]%16), int(ops[1])
			r := x.find([]byte(key))
			if had, there := model[key]; there != (r != 0) || there && string(x.entry(r).Value()) != had.value {
				t.Fatalf("%s is there: %t, want %t with %q", key, r != 0, there, had.value)
			}
			if size == 0 {
				if r != 0 {
					x.remove(r)
					delete(model, key)
				}
				continue
			}
			want := state{strings.Repeat(string(step), size*size/4), 0}
			if size%3 == 0 {
				want.deadline = int64(size)
			}
			x.put(r, []byte(key), []byte("1:2:version"), []byte("fence"), []byte(want.value), want.deadline, byte(size%2)*flagPersist)
			model[key] = want
			x.compactBlock()
		}
		if x.len() != len(model) || x.ordered.Len() != len(model) {
			t.Errorf("%d keys, %d in order, want %d", x.len(), x.ordered.Len(), len(model))
		}
		var last []byte
		x.from(nil, func(e Entry) bool {
			m, there := model[string(e.Key())]
			if !there || string(e.Value()) != m.value || e.deadline() != m.deadline || string(e.Version()) != "1:2:version" || string(e.Fence()) != "fence" {
				t.Errorf("%s is %q until %d, want %q until %d", e.Key(), e.Value(), e.deadline(), m.value, m.deadline)
			}
			if bytes.Compare(e.Key(), last) <= 0 {
				t.Errorf("%s comes after %s", e.Key(), last)
			}
			last = e.Key()
			return true
		})
		var due int64
		for r := x.next(); r != 0; r = x.next() {
			e := x.entry(r)
			if e.deadline() < due || e.deadline() != model[string(e.Key())].deadline {
				t.Errorf("%s expires at %d after one at %d", e.Key(), e.deadline(), due)
			}
			due = e.deadline()
			delete(model, string(e.Key()))
			x.remove(r)
		}
		for key, m := range model {
			if m.deadline != 0 {
				t.Errorf("%s did not expire", key)
			}
			x.remove(x.find([]byte(key)))
		}
		checkArena(t, x.arena)
	})
}

// checkArena checks an arena that holds no records any more.
func checkArena(t *testing.T, a *arena) {
	t.Helper()
	for i, b := range a.blocks {
		if b.used != 0 {
			t.Errorf("block %d has %d slots in use", i, b.used)
		}
		free := 0
		for slot := b.freed; slot != 0; slot = binary.LittleEndian.Uint32(b.data[int(slot-1)*b.size:]) {
			free++
		}
		if free != b.fresh {
			t.Errorf("block %d has %d free slots of %d", i, free, b.fresh)
		}
	}
}

// TestCompact: a store that shrinks releases memory, even if the remaining records are spread over all
// blocks.
func TestCompact(t *testing.T) {
	s := New(Options{})
	const keys, part = 200_000, 10
	value := bytes.Repeat([]byte("v"), 100)
	for i := range keys {
		if text := s.Apply(Write{Key: fmt.Append(nil, "key", i), Value: value}); text != "" {
			t.Fatal(text)
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	full, all := s.index.arena.memory, heap()
	for i := range keys {
		if i%part != 0 {
			s.Apply(Write{Key: fmt.Append(nil, "key", i), Delete: true})
			s.Tidy()
		}
	}
	if left := s.index.arena.memory; left > full/4 {
		t.Errorf("%d bytes are left of %d", left, full)
	}
	if left := heap(); left > all/4 {
		t.Errorf("%d bytes of the heap are left of %d", left, all)
	}
	for i := range keys / part {
		if e, found := s.Lookup(fmt.Append(nil, "key", i*part)); !found || !bytes.Equal(e.Value(), value) {
			t.Fatalf("key%d is lost", i*part)
		}
	}
}
