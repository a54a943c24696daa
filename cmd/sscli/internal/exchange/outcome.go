package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// An Outcome is how a request ended: its result, or why there is none.
type Outcome struct {
	Result  client.Result // nil after a DEL that was read back, although the key is gone
	Warning string        // for the user, about a write that was read back; empty = none
	Err     error
}

// Lost returns the error of a write that got no usable reply, or nil.
func (o *Outcome) Lost() *client.LostReplyError {
	lost, _ := errors.AsType[*client.LostReplyError](o.Err)
	return lost
}

// Warn prints the outcome's warning, and the warnings and notes that came with its result. It prints the queued results
// first, and returns the error of that.
func (o *Outcome) Warn(a *app.App) (err error) {
	var info client.ReplyInfo
	if o.Result != nil {
		info = o.Result.Info()
	}
	if o.Warning != "" || len(info.Warnings)+len(info.Notes) > 0 {
		err = a.Flush()
	}
	if o.Warning != "" {
		a.Warn(o.Warning)
	}
	a.WarnOf(info)
	return err
}

// recover finds out whether writes without a usable reply were applied. This is the rule for all commands: it waits
// until their requests have expired, and then reads all their keys within one timeout. It leaves other outcomes as
// they are.
//
// After a plain SET, if the key holds its value, Result is what the store would have replied, as far as it can be
// known. After a DEL without a token, if the key is gone, Result is nil. In both
// cases, Warning says so. Every other outcome is an error: not applied, or unknown.
func (s *Store) recover(ctx context.Context, outcomes ...*Outcome) {
	var expired time.Time
	for _, o := range outcomes {
		if lost := o.Lost(); lost != nil {
			if s.note != nil && ctx.Err() == nil {
				s.note(lost.Error() + "; reading back")
			}
			if lost.Expires.After(expired) {
				expired = lost.Expires
			}
		}
	}
	if expired.IsZero() {
		return
	}
	limited, cancel := context.WithTimeout(ctx, max(time.Until(expired), 0)+s.timeout)
	defer cancel()
	var reading sync.WaitGroup
	for _, o := range outcomes {
		if lost := o.Lost(); lost != nil {
			reading.Go(func() { o.Result, o.Warning, o.Err = recoverOne(ctx, limited, s.Session, lost, s.timeout) })
		}
	}
	reading.Wait()
}

// recoverOne does the work of recover for one write. limited is ctx with the common deadline of all
// writes.
func recoverOne(ctx, limited context.Context, s *client.Session, lost *client.LostReplyError, timeout time.Duration) (result client.Result, warning string, err error) {
	if ctx.Err() != nil {
		return nil, "", &fault.UnknownError{Err: context.Cause(ctx), Why: "the key was not read back"}
	}
	found, err := s.ReadBack(limited, lost)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", &fault.UnknownError{Err: context.Cause(ctx), Why: "reading the key back was interrupted"}
	case err == context.DeadlineExceeded, err == client.ErrNoReply:
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
		return fmt.Sprintf("the key holds %s since %s (%s)", format.Brief(string(now.Value)), now.Version, format.Age(time.Since(now.Version.Time())))
	case wire.IsWrite(c.Verb()):
		return "the key is missing now"
	}
	return "what the request does is not known"
}
