package client

import (
	"context"
	"time"

	"github.com/sscli/sscli/internal/retry"
	"github.com/sscli/sscli/internal/wait"
)

// backOff returns the pause before an attempt to reconnect; attempt 0 has no pause.
func backOff(attempt int) time.Duration { return retry.Pause(attempt, 0) }

// persist calls f, and again for up to Options.RetryFor while there is no connection.
func persist[T any](ctx context.Context, s *Session, f func() (T, error)) (result T, err error) {
	if s.o.RetryFor == 0 || s.ctx == nil {
		return f()
	}
	waiting, stop := s.whileOpen(ctx)
	defer stop()
	o := retry.Options{For: s.o.RetryFor, Tell: s.o.OnRetry, Again: func(err error) bool { return isA[*DialError](err) && !s.isFinal(err) }}
	err = retry.Do(waiting, o, func() (err error) {
		result, err = f()
		return err
	})
	return result, err
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
