package store

import "time"

// A Saved is the state of a key as an [Entry] had it.
type Saved struct {
	Key, Value, Version, Fence []byte

	Expires time.Time // zero: never
	Persist bool
}

// Restore brings back a key that was kept, with its version, in place of what the store has of
// it. No watcher is notified and Options.Changed is not called. A key that has expired
// meanwhile expires with the next call of [Store.Expire], in its turn.
func (s *Store) Restore(k Saved) {
	flags := byte(flagKept)
	if k.Persist {
		flags |= flagPersist
	}
	s.index.put(s.index.find(k.Key), k.Key, k.Version, k.Fence, k.Value, deadline(k.Expires), flags)
}

// RestoreClock has all later versions be greater than any whose wall clock, in milliseconds,
// was before that time.
func (s *Store) RestoreClock(wall int64) {
	if wall > s.clock.wall {
		s.clock = clock{wall: wall}
	}
}
