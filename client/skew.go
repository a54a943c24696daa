package client

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sscli/sscli/client/wire"
)

// A Skew is how far the local clock is ahead of the store's.
type Skew struct {
	Ahead time.Duration // negative: it is behind
	Bound time.Duration // by how much Ahead may be wrong either way
}

// skewAge is how old the timestamp of a measuring SET is: older than any clock
// that could still be used is slow.
const skewAge = 24 * time.Hour

var errNoVersion = errors.New("the store sent no version")

// MeasureSkew compares the clocks: it sets key, which has to be a scratch key and
// expires after ttl, with a timestamp that is a day old. The store accepts that and
// makes the version from its own clock (protocol.md 3.2), which it read at some
// moment of the round trip; the bound is half of that and the half millisecond that
// versions leave out. The store's clock is a hybrid one: it is never behind the
// store's wall clock, and ahead of it if some writer's was, which counts for the
// store's limit of a minute as well. Errors are those of [Session.Do].
func (s *Session) MeasureSkew(ctx context.Context, key string, ttl time.Duration) (Skew, error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	c := Set(key, nil, SetOptions{TTL: ttl})
	c.timestamp = wire.Version{Wall: time.Now().Add(-skewAge).UnixMilli(), Node: uuid.NewString()}
	p, err := s.send(ctx, c)
	if err != nil {
		return Skew{}, err
	}
	r, err := typed[SetResult](p.wait(ctx))
	if err != nil {
		return Skew{}, err
	}
	if r.Version.IsZero() {
		return Skew{}, &AnswerError{errNoVersion}
	}
	const rest = time.Millisecond / 2
	store := r.Version.Time().Add(rest)
	return Skew{
		Ahead: p.sent.Add(r.RTT / 2).Sub(store).Round(time.Microsecond),
		Bound: (r.RTT/2 + rest).Round(time.Microsecond),
	}, nil
}
