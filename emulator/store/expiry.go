package store

import (
	"bytes"
	"cmp"
	"time"

	"github.com/tidwall/btree"
)

// newExpiries returns an empty set of entries in the order in which they expire.
func newExpiries() *btree.BTreeG[*Entry] {
	return btree.NewBTreeGOptions(func(a, b *Entry) bool {
		return cmp.Or(cmp.Compare(a.deadline, b.deadline), bytes.Compare(a.Key(), b.Key())) < 0
	}, btree.Options{NoLocks: true})
}

// Expire reads the clock, removes the keys that have expired and queues the notifications,
// which are those of a deletion (protocol.md 2.6, 2.7). A fence does not keep a key
// (protocol.md 4 row 17).
func (s *Store) Expire() {
	s.now = s.opts.Now()
	now := s.now.UnixMicro()
	for {
		e, ok := s.expiries.Min()
		if !ok || !e.due(now) {
			return
		}
		s.remove(e, CauseExpired, "", stamp{})
	}
}

// NextExpiry returns when the next key expires, on the store's clock.
func (s *Store) NextExpiry() (time.Time, bool) {
	e, ok := s.expiries.Min()
	if !ok {
		return time.Time{}, false
	}
	return e.Expires(), true
}

// expireAt sets or, with 0, clears the expiry of a key.
func (s *Store) expireAt(e *Entry, deadline int64) {
	if e.deadline == deadline {
		return
	}
	if e.deadline != 0 {
		s.expiries.Delete(e)
	}
	e.deadline = deadline
	if deadline != 0 {
		s.expiries.Set(e)
	}
}
