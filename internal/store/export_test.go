package store

// Watching returns the number of registrations of a client.
func (s *Store) Watching(clientID string) int {
	if w := s.watching[clientID]; w != nil {
		return len(w.keys)
	}
	return 0
}
