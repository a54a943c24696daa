package client

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sscli/sscli/internal/retry"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/internal/wire"
)

// Outcome is what is known about a write that got no usable reply.
type Outcome int

// The outcomes.
const (
	OutcomeUnknown Outcome = iota // the write may or may not have been applied
	NotApplied                    // the write was not applied and will not be
	Fulfilled                     // the key is in the state that the write asked for, but another client may have written it
)

func (o Outcome) String() string {
	switch o {
	case OutcomeUnknown:
		return "unknown"
	case NotApplied:
		return "not applied"
	case Fulfilled:
		return "fulfilled"
	}
	return "Outcome(" + strconv.Itoa(int(o)) + ")"
}

// ReadBackResult is the result of [Session.ReadBack].
type ReadBackResult struct {
	Outcome Outcome
	Now     GetResult // the key's current state; zero if it was not read, for example after Call with an unknown verb
	Result  Result    // if Fulfilled, what the store would have answered: a SetResult or a CallResult; nil if not known
}

// ReadBack finds out whether a write that got no usable reply was applied. It waits until the
// request has expired and then reads the key; ctx should leave time for both. An error means
// that the key could not be read.
//
// The store guarantees that the version assigned by a SET is greater than the request's `__ts`.
// If the key's version is not greater, the SET was not applied. A greater
// version proves nothing: another client may have written the same value. A delete assigns no
// version, so the key's version cannot show that the delete was not applied: another client, whose
// clock is slow, may have written the key afterwards. The outcome is Fulfilled only if it makes no
// difference which client made the change: after a [Set] without options, if the key holds the value,
// and after a [Del] without a fencing token, if the key is missing.
func (s *Session) ReadBack(ctx context.Context, lost *LostReplyError) (ReadBackResult, error) {
	if lost == nil {
		return ReadBackResult{}, invalid("no lost reply to read back")
	}
	if lost.Command.effect == effectUnknown {
		return ReadBackResult{}, nil
	}
	if !wait.For(ctx, time.Until(lost.Expires)) {
		return ReadBackResult{}, context.Cause(ctx)
	}
	now, err := s.getAgain(ctx, lost.Command.Key())
	if err != nil {
		return ReadBackResult{}, err
	}
	r := ReadBackResult{Outcome: compare(lost.Command, lost.Timestamp, now), Now: now}
	if r.Outcome == Fulfilled && now.Found {
		r.Result = lost.Command.read(wire.Value{Kind: wire.SimpleString, Text: []byte("OK")}, &now.ReplyInfo)
	}
	return r, nil
}

// getAgain reads a key. It sends the GET again if the connection ends, or if no reply comes within half
// of the time that is left in ctx. If the broker was silent on the old connection, the second GET goes
// over a new connection.
func (s *Session) getAgain(ctx context.Context, key string) (r GetResult, err error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	deadline, _ := ctx.Deadline()
	limited, cancel := limitTo(ctx, time.Until(deadline)/2)
	defer cancel()
	again := func(err error) bool { return errors.Is(err, context.DeadlineExceeded) || isA[*LostError](err) }
	err = retry.Do(ctx, retry.Options{For: retry.Forever, Again: again}, func() (err error) {
		r, err = s.Get(limited, key)
		limited = ctx
		return err
	})
	return r, err
}

// compare returns the outcome of a write, given the key's current state. sent is the write's
// timestamp.
func compare(c Command, sent Version, now GetResult) Outcome {
	switch {
	case !now.Found && c.Verb() == wire.VerbDel && c.fence == "":
		return Fulfilled
	case c.effect == effectDelete || !now.Found || now.Version.IsZero():
		return OutcomeUnknown
	case now.Version.Compare(sent) <= 0:
		return NotApplied
	case c.asksForValueOnly() && bytes.Equal(now.Value, []byte(c.first[2])):
		return Fulfilled
	}
	return OutcomeUnknown
}

// asksForValueOnly reports whether a command is a SET without options. Reading the key does not
// show whether a condition was met, an expiry set or a fencing token stored.
func (c Command) asksForValueOnly() bool {
	return c.effect == effectPut && c.count == 3 && len(c.more) == 0 && c.fence == "" && !c.persist
}
