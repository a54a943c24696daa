package store

// Watching returns the number of registrations of a client.
func (s *Store) Watching(clientID string) int {
	if w := s.watching.M[clientID]; w != nil {
		return len(w.keys.M)
	}
	return 0
}
