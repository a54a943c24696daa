package store

import "time"

// A Saved is the state of a key, copied from an [Entry].
type Saved struct {
	Key, Value, Version, Fence []byte

	Expires time.Time // zero: never
	Persist bool
}

// Restore sets the state of a key that was kept, version included. No watcher is notified and
// Options.Changed is not called. A key that has expired meanwhile is removed by the next call of
// [Store.Expire].
func (s *Store) Restore(k Saved) {
	flags := byte(flagKept)
	if k.Persist {
		flags |= flagPersist
	}
	s.index.put(s.index.find(k.Key), k.Key, k.Version, k.Fence, k.Value, deadline(k.Expires), flags)
}

// RestoreClock makes all later versions greater than any with an earlier wall clock, in
// milliseconds.
func (s *Store) RestoreClock(wall int64) {
	if wall > s.clock.wall {
		s.clock = clock{wall: wall}
	}
}
