package verb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// An Answer is the reply to a request, or the error. If the reply to a write was lost, Recover fills
// in the Answer.
type Answer struct {
	Reply   client.Result
	Warning string // for the user, about a recovered write; empty = none
	Err     error
}

// Lost returns the error of a write that got no usable reply, or nil.
func (a *Answer) Lost() *client.LostAnswerError {
	lost, _ := errors.AsType[*client.LostAnswerError](a.Err)
	return lost
}

// Recover finds out whether writes without a usable reply were applied. It waits until their
// requests have expired, and then reads all their keys within timeout. It leaves other answers
// as they are.
//
// After a plain SET, if the key holds its value, Reply is the reply that the store would have sent,
// as far as it can be known. After a DEL without a token, if the key is gone, Reply is nil. In both
// cases, Warning says so. Every other outcome is an error.
func Recover(ctx context.Context, s *client.Session, answers []*Answer, timeout time.Duration) {
	var expired time.Time
	for _, a := range answers {
		if lost := a.Lost(); lost != nil && lost.Expires.After(expired) {
			expired = lost.Expires
		}
	}
	limited, cancel := context.WithTimeout(ctx, max(time.Until(expired), 0)+timeout)
	defer cancel()
	var reading sync.WaitGroup
	for _, a := range answers {
		if lost := a.Lost(); lost != nil {
			reading.Go(func() { a.Reply, a.Warning, a.Err = recoverOne(ctx, limited, s, lost, timeout) })
		}
	}
	reading.Wait()
}

// recoverOne does the work of Recover for one write. limited is ctx with the common deadline of all
// writes.
func recoverOne(ctx, limited context.Context, s *client.Session, lost *client.LostAnswerError, timeout time.Duration) (reply client.Result, warning string, err error) {
	if ctx.Err() != nil {
		return nil, "", &fault.UnknownError{Err: context.Cause(ctx), Why: "the key was not read back"}
	}
	found, err := s.ReadBack(limited, lost)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", &fault.UnknownError{Err: context.Cause(ctx), Why: "reading the key back was interrupted"}
	case err == context.DeadlineExceeded, err == client.ErrNoAnswer:
		return nil, "", &fault.UnknownError{Err: lost.Err, Within: timeout, Why: fmt.Sprintf("the key could not be read back within another %v", timeout)}
	case err != nil:
		return nil, "", &fault.UnknownError{Err: lost.Err, Within: timeout, Why: "reading the key back: " + fault.Message(err)}
	case found.Outcome == client.NotApplied:
		return nil, "", &fault.NotAppliedError{Err: lost.Err, Within: timeout}
	case found.Outcome == client.OutcomeUnknown:
		return nil, "", &fault.UnknownError{Err: lost.Err, Within: timeout, Why: nowIs(lost.Command, found.Now)}
	}
	warning = fmt.Sprintf("%s %s: %s; ", format.Verb(lost.Command.Verb()), format.Brief(lost.Command.Key()), fault.NoAnswer(lost.Err, timeout))
	if !found.Now.Found {
		return nil, warning + "the key is gone, perhaps deleted by another client", nil
	}
	return found.Result, warning + "the key holds this value, perhaps set by another client", nil
}

// nowIs returns a text that says what a command's key holds and since when. For an unknown verb, the key
// was not read, so the text says only that the effect of the request is not known.
func nowIs(c client.Command, now client.GetResult) string {
	switch {
	case now.Found && now.Version.IsZero():
		return "the key holds " + format.Brief(string(now.Value))
	case now.Found:
		return fmt.Sprintf("the key holds %s since %s (%s)", format.Brief(string(now.Value)), now.Version, age(now.Version))
	case isWrite(c.Verb()):
		return "the key is missing now"
	}
	return "what the request does is not known"
}
