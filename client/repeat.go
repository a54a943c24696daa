package client

import (
	"context"
	"errors"
	"time"

	"github.com/sscli/sscli/internal/retry"
	"github.com/sscli/sscli/internal/wait"
)

// retried calls f, and calls it again for up to Options.RetryFor while there is no connection. c is the command that f sends; if
// it only reads, f is also called again if its reply was lost. The zero Command stands for none.
func retried[T any](ctx context.Context, s *Session, c Command, f func() (T, error)) (result T, err error) {
	if s.o.RetryFor == 0 || s.ctx == nil {
		return f()
	}
	waiting, stop := s.whileOpen(ctx)
	defer stop()
	o := retry.Options{For: s.o.RetryFor, Again: func(err error) bool { return s.mayRepeat(c, err) }}
	err = retry.Do(waiting, o, func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}

// mayRepeat reports whether a command may be sent again after err, because it was not sent, or because it only reads and
// its reply was lost.
func (s *Session) mayRepeat(c Command, err error) bool {
	lost := isA[*LostError](err) || errors.Is(err, ErrNoReply)
	return (isA[*DialError](err) || lost && c.reads()) && !s.isFinal(err)
}

// persist calls f until it succeeds, no further attempt may succeed, or ctx or the session ends.
func (s *Session) persist(ctx context.Context, o retry.Options, f func() error) error {
	waiting, stop := s.whileOpen(ctx)
	defer stop()
	o.For = retry.Forever
	err := retry.Do(waiting, o, f)
	if err != nil && waiting.Err() != nil {
		return context.Cause(waiting)
	}
	return err
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
