package exchange

// Seen is a set of keys that takes the same memory for each, however long it is: it holds digests.
type Seen map[Digest]struct{}

// Add adds a key. It returns false if the key is in the set already.
func (s Seen) Add(key string) bool {
	d := DigestOf([]byte(key))
	if _, known := s[d]; known {
		return false
	}
	s[d] = struct{}{}
	return true
}

// Has reports whether a key is in the set.
func (s Seen) Has(key string) bool {
	_, known := s[DigestOf([]byte(key))]
	return known
}
