package store

import "github.com/sscli/sscli/client/wire"

// What another front than the requests of the protocol needs to know.

// KeyAt returns the i-th key, from 0 to Len, in the order of the bytes.
func (s *Store) KeyAt(i int) []byte {
	r, _ := s.index.ordered.GetAt(i)
	return s.index.key(r)
}

// Expiring returns how many keys expire.
func (s *Store) Expiring() int { return s.index.expiries.Len() }

// Expect prepares to look keys up. It changes nothing.
func (s *Store) Expect(keys [][]byte) { s.index.touch(keys) }

// Room returns the text of the refusal if n more keys would not fit the quota.
func (s *Store) Room(n int) (refusal string) {
	if n > 0 && s.opts.MaxKeys > 0 && s.index.len()+n > s.opts.MaxKeys {
		return wire.TextQuota
	}
	return ""
}

// Fenced returns the text with which a write without a fencing token is refused, or "".
func (s *Store) Fenced(key []byte) (refusal string) { return s.guard(stamp{}, s.index.find(key)) }

// Restricted tells whether Allowed may refuse anybody anything.
func (s *Store) Restricted() bool { return s.opts.Authorize != nil }

// Allowed tells whether a client may read or write a key.
func (s *Store) Allowed(clientID, username string, key []byte, write bool) bool {
	return s.allowed(clientID, username, key, write)
}
