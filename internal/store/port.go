package store

// The methods in this file are for front ends with another protocol, such as the Redis port.

// KeyAt returns key number i in byte order, counted from 0. i must be less than Len.
func (s *Store) KeyAt(i int) []byte {
	r, _ := s.index.ordered.GetAt(i)
	return s.index.key(r)
}

// Prefetch loads the record of a key into the processor's cache.
func (s *Store) Prefetch(key []byte) { s.index.prefetch(key) }

// Expiring returns the number of keys with an expiry.
func (s *Store) Expiring() int { return s.index.expiries.Len() }

// Restricted reports whether Options.Authorize is set, so that Allowed may return false.
func (s *Store) Restricted() bool { return s.opts.Authorize != nil }

// Allowed reports whether a client may read a key or, if write is set, may write it.
func (s *Store) Allowed(clientID, username string, key []byte, write bool) bool {
	return s.opts.Authorize == nil || s.opts.Authorize(clientID, username, string(key), write)
}
