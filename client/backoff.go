package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sscli/sscli/internal/wait"
)

// backOff returns the pause before an attempt. Attempt 0 has no pause. Later pauses start at 100 ms
// and double up to 10 s; each is shortened by up to half at random, so that clients do not all
// reconnect at the same time.
func backOff(attempt int) time.Duration {
	if attempt == 0 {
		return 0
	}
	const first, longest = 100 * time.Millisecond, 10 * time.Second
	d := min(first<<min(attempt-1, 20), longest)
	return d/2 + rand.N(d/2)
}

// retry calls f until it succeeds, or fails other than for want of a connection, or Options.RetryFor has
// passed, or ctx ends.
func retry[T any](ctx context.Context, s *Session, f func() (T, error)) (T, error) {
	until := time.Now().Add(s.o.RetryFor)
	for failures := 1; ; failures++ {
		result, err := f()
		left := time.Until(until)
		if !isA[*DialError](err) || left <= 0 || s.isFinal(err) || s.ctx.Err() != nil || s.sleep(ctx, min(backOff(failures), left)) != nil {
			return result, err
		}
	}
}

// sleep waits for d. It returns an error if ctx ends or the session is closed first.
func (s *Session) sleep(ctx context.Context, d time.Duration) error {
	ctx, stop := s.whileOpen(ctx)
	defer stop()
	if !wait.For(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}
