package bulkread

import "crypto/sha256"

// Seen is a set of keys that takes the same memory for each, however long it is: it holds digests.
type Seen map[[16]byte]struct{}

// Add adds a key. It returns false if the key is in the set already.
func (s Seen) Add(key string) bool {
	digest := sha256.Sum256([]byte(key))
	half := [16]byte(digest[:])
	if _, known := s[half]; known {
		return false
	}
	s[half] = struct{}{}
	return true
}
