package store

import "github.com/sscli/sscli/internal/wire"

// The methods in this file are for front ends with another protocol, such as the Redis port.

// KeyAt returns key number i in byte order, counted from 0. i must be less than Len.
func (s *Store) KeyAt(i int) []byte {
	r, _ := s.index.ordered.GetAt(i)
	return s.index.key(r)
}

// Expiring returns the number of keys with an expiry.
func (s *Store) Expiring() int { return s.index.expiries.Len() }

// CheckQuota returns the text of the refusal if n more keys would exceed the quota of keys. Otherwise it
// returns "".
func (s *Store) CheckQuota(n int) (refusal string) {
	if n > 0 && s.opts.MaxKeys > 0 && s.index.len()+n > s.opts.MaxKeys {
		return wire.TextQuota
	}
	return ""
}

// Fenced returns the text with which the store refuses a write to the key without a fencing token, or ""
// if the key is not fenced.
func (s *Store) Fenced(key []byte) (refusal string) {
	s.readClock()
	return s.checkFence(hlc{}, s.find(key))
}

// Restricted reports whether Options.Authorize is set, so that Allowed may return false.
func (s *Store) Restricted() bool { return s.opts.Authorize != nil }

// Allowed reports whether a client may read a key or, if write is set, may write it.
func (s *Store) Allowed(clientID, username string, key []byte, write bool) bool {
	return s.opts.Authorize == nil || s.opts.Authorize(clientID, username, string(key), write)
}
