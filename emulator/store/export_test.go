package store

// Watching returns the number of registrations of a client.
func (s *Store) Watching(clientID string) int { return len(s.watching[clientID]) }
