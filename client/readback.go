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

// ReadBackResult is what [Session.ReadBack] found out.
type ReadBackResult struct {
	Outcome Outcome
	Now     GetResult // what the key holds now; zero if it was not read, as after a [Call] of an unknown verb
	Result  Result    // with Fulfilled: what the store would have answered; nil if that is not known
}

// ReadBack finds out what became of a write whose answer was lost. It waits until the
// broker no longer accepts the request and then reads the key. ctx should leave time
// for both. An error means that the key could not be read.
//
// It rests on the store's promise that the version of a write is greater than
// the request's `__ts` (protocol.md 3.2): an older version was there before.
func (s *Session) ReadBack(ctx context.Context, lost *LostAnswerError) (ReadBackResult, error) {
	if lost.Command.effect == effectUnknown {
		return ReadBackResult{}, nil
	}
	if err := lost.expired(ctx); err != nil {
		return ReadBackResult{}, err
	}
	now, err := s.Get(ctx, lost.Command.Key())
	if err != nil {
		return ReadBackResult{}, err
	}
	r := ReadBackResult{Outcome: judge(lost.Command, lost.Timestamp, now), Now: now}
	if r.Outcome == Fulfilled && now.Found {
		r.Result = lost.Command.read(wire.Value{Kind: wire.SimpleString, Text: []byte("OK")}, now.ReplyInfo)
	}
	return r, nil
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
func ReadBack(ctx context.Context, o Options, lost *LostAnswerError) (ReadBackResult, error) {
	if lost.Command.effect == effectUnknown {
		return ReadBackResult{}, nil
	}
	if err := lost.expired(ctx); err != nil {
		return ReadBackResult{}, err
	}
	s, err := Dial(ctx, o)
	if err != nil {
		return ReadBackResult{}, err
	}
	defer s.Close()
	return s.ReadBack(ctx, lost)
}

// judge compares what the key is now with what the write would have made of it.
func judge(c Command, sent Version, now GetResult) Outcome {
	switch {
	case !now.Found && c.effect == effectDelete:
		return Fulfilled
	case !now.Found || now.Version.IsZero():
		return OutcomeUnknown
	case now.Version.Compare(sent) <= 0:
		return NotApplied
	case c.effect == effectPut && bytes.Equal(now.Value, []byte(c.words[2])):
		return Fulfilled
	}
	return OutcomeUnknown
}
