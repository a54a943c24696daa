package client

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sscli/sscli/internal/wire"
)

// A Skew is the difference between the local clock and the store's.
type Skew struct {
	Ahead time.Duration // how far the local clock is ahead; negative if it is behind
	Bound time.Duration // the largest possible error of Ahead, in either direction

	// Exact reports that the store took the time from its own clock, which the counter 0 of its version shows. If not,
	// Ahead compares with the hybrid clock: the local clock may be up to a minute further ahead of the store's own.
	Exact bool
}

// skewAge is the age of MeasureSkew's timestamp. No usable clock is that far behind.
const skewAge = 24 * time.Hour

// MeasureSkew compares the local clock with the store's. It sets key, a scratch key that
// expires after ttl, with a timestamp that is a day old. The store accepts the old timestamp
// and takes the version from its own clock during the round trip. So the
// bound is half the round trip, plus half a millisecond because versions are in whole
// milliseconds.
//
// The store's clock is a hybrid logical clock. It is never behind the store's wall clock, but
// is ahead of it if a writer's clock was ahead, until the wall clock has caught up: see [Skew.Exact].
// The store refuses timestamps that are more than a minute ahead of the hybrid clock. MeasureSkew
// returns the errors of [Session.Do].
func (s *Session) MeasureSkew(ctx context.Context, key string, ttl time.Duration) (Skew, error) {
	return retried(ctx, s, Command{}, func() (Skew, error) { return s.measureSkew(ctx, key, ttl) })
}

// measureSkew is like MeasureSkew, without Options.RetryFor.
func (s *Session) measureSkew(ctx context.Context, key string, ttl time.Duration) (Skew, error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	c := Set(key, "", SetOptions{TTL: ttl})
	c.timestamp = &wire.Version{Wall: time.Now().Add(-skewAge).UnixMilli(), Node: uuid.NewString()}
	p, err := s.send(ctx, c)
	if err != nil {
		return Skew{}, err
	}
	r, err := As[SetResult](p.wait(ctx))
	if err != nil {
		return Skew{}, err
	}
	if r.Version.IsZero() {
		return Skew{}, &ReplyError{errors.New("the store sent no version")}
	}
	const rest = time.Millisecond / 2
	store := r.Version.Time().Add(rest)
	return Skew{
		Ahead: p.sent.Add(r.RTT / 2).Sub(store).Round(time.Microsecond),
		Bound: (r.RTT/2 + rest).Round(time.Microsecond),
		Exact: r.Version.Counter == 0,
	}, nil
}
