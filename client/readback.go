package client

import (
	"bytes"
	"context"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// Outcome is what became of a write whose answer was lost.
type Outcome int

// Fulfilled does not say by whom: the key holds the value, or is gone, as the
// write wanted it, perhaps because somebody else did the same.
const (
	OutcomeUnknown Outcome = iota // it may have been applied or not
	NotApplied                    // it was not applied and will not be
	Fulfilled
)

// ReadBack finds out what became of a write whose answer was lost. It waits
// until the broker no longer accepts the request and then reads the key; the
// reply is that of the read. ctx should leave time for both. An error means that
// the key could not be read.
//
// It rests on the store's promise that the version of a write is greater than
// the request's `__ts` (protocol.md 3.2): an older version was there before.
func (s *Session) ReadBack(ctx context.Context, lost *LostAnswerError) (Outcome, Reply, error) {
	if lost.Command.effect == effectUnknown {
		return OutcomeUnknown, Reply{}, nil
	}
	if err := lost.expired(ctx); err != nil {
		return OutcomeUnknown, Reply{}, err
	}
	now, err := s.Get(ctx, lost.Command.Key())
	if err != nil {
		return OutcomeUnknown, Reply{}, err
	}
	return judge(lost.Command, lost.Timestamp, now), now, nil
}

// expired waits until the broker no longer accepts the request.
func (e *LostAnswerError) expired(ctx context.Context) error {
	wait := time.NewTimer(time.Until(e.Expires))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ReadBack is [Session.ReadBack] on a connection of its own, made after the
// waiting: whatever lost the answer has until then to get well.
func ReadBack(ctx context.Context, o Options, lost *LostAnswerError) (Outcome, Reply, error) {
	if lost.Command.effect == effectUnknown {
		return OutcomeUnknown, Reply{}, nil
	}
	if err := lost.expired(ctx); err != nil {
		return OutcomeUnknown, Reply{}, err
	}
	s, err := Dial(ctx, o)
	if err != nil {
		return OutcomeUnknown, Reply{}, err
	}
	defer s.Close()
	return s.ReadBack(ctx, lost)
}

// judge compares what the key is now with what the write would have made of it.
func judge(c Command, sent wire.Version, now Reply) Outcome {
	value, found := now.Bytes()
	switch {
	case !found && c.effect == effectDelete:
		return Fulfilled
	case !found || now.Version.IsZero():
		return OutcomeUnknown
	case now.Version.Compare(sent) <= 0:
		return NotApplied
	case c.effect == effectPut && bytes.Equal(value, []byte(c.words[2])):
		return Fulfilled
	}
	return OutcomeUnknown
}
