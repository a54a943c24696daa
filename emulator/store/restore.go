package store

import "time"

// A Saved is the state of a key, copied from an [Entry].
type Saved struct {
	Key, Value, Version, Fence []byte

	Expires time.Time // zero: never
	Persist bool
}

// Restore sets the state of a key, including its version, that the caller kept (Options.Keep). It
// notifies no watcher and does not call Options.Changed. A key that has expired meanwhile is
// removed by the next call of [Store.Expire].
func (s *Store) Restore(k Saved) {
	flags := byte(flagKept)
	if k.Persist {
		flags |= flagPersist
	}
	s.index.put(s.index.find(k.Key), k.Key, k.Version, k.Fence, k.Value, deadline(k.Expires), flags)
}

// RestoreClock advances the store's clock to wall, in milliseconds since the Unix epoch, so that
// every new version is greater than all versions with an earlier wall clock.
func (s *Store) RestoreClock(wall int64) {
	if wall > s.clock.wall {
		s.clock = clock{wall: wall}
	}
}
