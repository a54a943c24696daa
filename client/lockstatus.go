package client

import (
	"context"
	"fmt"
)

// LockStatus is the state of a lock, as far as it is known.
type LockStatus struct {
	Name   string
	Held   bool
	Holder []byte  // nil if not held, or not known
	Token  Version // the key's version, from the last acquisition or renewal; zero if not known
}

func (s LockStatus) by() string {
	if s.Holder == nil {
		return "another"
	}
	return fmt.Sprintf("%q", s.Holder)
}

// LockStatus reads a lock's key. It returns the errors of [Session.Do].
func (s *Session) LockStatus(ctx context.Context, name string) (LockStatus, error) {
	r, err := s.Get(ctx, name)
	if err != nil {
		return LockStatus{Name: name}, err
	}
	return LockStatus{name, r.Found, r.Value, r.Version}, nil
}
