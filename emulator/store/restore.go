package store

import "time"

// A Saved is the state of a key, copied from an [Entry].
type Saved struct {
	Key, Value, Version, Fence []byte

	Expires time.Time // zero: never
	Persist bool
}

// Restore sets a key to a state that the caller has saved (see Options.Keep), including its version.
// It does not notify watchers or call Options.Changed. If the key has expired since it was saved,
// the next call of [Store.Expire] removes it.
func (s *Store) Restore(k Saved) {
	flags := byte(flagKept)
	if k.Persist {
		flags |= flagPersist
	}
	s.index.put(s.index.find(k.Key), k.Key, k.Version, k.Fence, k.Value, deadline(k.Expires), flags, nil)
}

// RestoreClock advances the store's clock to wall, in milliseconds since the Unix epoch, so that
// every new version is greater than all versions with an earlier wall clock.
func (s *Store) RestoreClock(wall int64) {
	if wall > s.clock.wall {
		s.clock = clock{wall: wall}
	}
}
