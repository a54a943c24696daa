package store

import "github.com/sscli/sscli/internal/wire"

// A Rehearsal tells, before several writes, whether [Store.Apply] would refuse one of them.
type Rehearsal struct {
	store *Store
	grown growth
	sizes map[string]int // size of each key's record after the writes so far, in bytes; 0 = deleted
}

// A growth is what writes add to the store: a number of keys, and upper bounds of bytes and blocks.
type growth struct{ keys, bytes, blocks int }

// Rehearse begins a rehearsal. Until it ends, nothing may change the store.
func (s *Store) Rehearse() Rehearsal { return Rehearsal{store: s, sizes: make(map[string]int)} }

// Apply returns "" or the text of the refusal, as [Store.Apply] would after the writes that were rehearsed
// before. If a quota is nearly reached, it may refuse a write that just fits.
func (r *Rehearsal) Apply(w *Write) (refusal string) {
	s := r.store
	s.readClock()
	found, text := s.checkWrite(w)
	if text != "" {
		return text
	}
	old, rehearsed := r.sizes[string(w.Key)]
	if !rehearsed {
		old = s.index.arena.size(found)
	}
	size := 0
	if !w.Delete {
		if s.full(r.grown, old, len(w.Key)+len(w.Value)) {
			return wire.TextQuota
		}
		size = s.maxRecord(w, old)
		r.grown.blocks++
	}
	r.grown.bytes += size - old
	switch {
	case old == 0 && size > 0:
		r.grown.keys++
		r.grown.bytes += perKey
	case old > 0 && size == 0:
		r.grown.keys--
		r.grown.bytes -= perKey
	}
	if !w.Expires.IsZero() {
		r.grown.bytes += perExpiry
	}
	r.sizes[string(w.Key)] = size
	return ""
}

// maxRecord returns an upper bound of the size of a key's record after a write. old is its present size.
func (s *Store) maxRecord(w *Write, old int) int {
	const deadline, version = 8, 2*maxDigits + len("::")
	head := headerSize + deadline + len(w.Key) + version + len(s.opts.Node)
	if len(w.Value) >= Large {
		return head + len(w.Value)
	}
	size := slotSize(head + len(w.Value))
	if size >= old*3/4 { // the record may stay in its slot
		size = max(size, old)
	}
	return size
}
