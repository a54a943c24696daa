package client

import "context"

// Update stores what change returns for the current value of a key, and lets no other Update of the key come between.
// The store cannot compare and set, so Update holds the lock "lock:" + key from the read to the write, and writes with
// the lock's token. If change returns an error, nothing is written, and Update returns the error.
//
// From then on the key is fenced: the store refuses writes without a token, also those of [Session.Set]; see [Lock.Set].
// So all writers of the key should use Update, or hold that lock.
//
// Update waits for the lock until ctx ends. It returns the errors of [Session.WithLock] and [Session.Set].
func (s *Session) Update(ctx context.Context, key string, change func(old GetResult) ([]byte, error)) (result SetResult, err error) {
	err = s.WithLock(ctx, "lock:"+key, func(ctx context.Context, l *Lock) error {
		old, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		value, err := change(old)
		if err != nil {
			return err
		}
		result, err = l.Set(ctx, key, value)
		return err
	})
	return result, err
}
