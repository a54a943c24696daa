package store

import "bytes"

// Restore sets a key to a state that the caller has saved (see Options.Keep), including its version.
// expires is in microseconds since the Unix epoch; 0 = never. Restore does not notify watchers or call
// Options.Changed. If the key has expired since it was saved, the next call to [Store.Expire] removes it. Every
// new version is greater than version.
func (s *Store) Restore(key, value, version, fence []byte, expires int64, persist bool) {
	flags := byte(flagKept)
	if persist {
		flags |= flagPersist
	}
	if len(value) >= Large {
		value = bytes.Clone(value)
	}
	s.index.put(s.index.find(key), key, version, fence, value, expires, flags)
	if seen, ok := parseHLC(version); ok {
		s.clock.see(seen)
	}
}

// RestoreClock advances the store's clock to wall, in milliseconds since the Unix epoch, so that
// every new version is greater than all versions with an earlier wall clock.
func (s *Store) RestoreClock(wall int64) {
	if wall > s.clock.wall {
		s.clock = clock{wall: wall}
	}
}
