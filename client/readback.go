package client

import (
	"bytes"
	"context"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// Outcome says what is known about a write whose answer was lost.
type Outcome int

// Fulfilled means that the key is as the write would have left it. Perhaps another client
// did the same.
const (
	OutcomeUnknown Outcome = iota // it may have been applied or not
	NotApplied                    // it was not applied and will not be
	Fulfilled
)

// ReadBackResult is the result of [Session.ReadBack].
type ReadBackResult struct {
	Outcome Outcome
	Now     GetResult // the key as it is now; zero if it was not read, as after Call with an unknown verb
	Result  Result    // with Fulfilled: what the store would have answered; nil if not known
}

// ReadBack finds out what became of a write whose answer was lost. It waits until the
// request has expired and then reads the key; ctx should leave time for both. An error
// means that the key could not be read.
//
// The store promises that the version of a write is greater than the request's `__ts`
// (protocol.md 3.2). So a key with an older version was not written.
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

// expired waits until the request has expired.
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

// ReadBack is like [Session.ReadBack] and connects for the purpose, after the wait, so
// that the cause of the loss has time to go away.
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

// judge compares the key as it is now with what the write would have made of it.
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
