package verb

import (
	"context"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// settle finds out what became of a write that got no usable answer. If the key is all
// that the write asked for, settle warns of it and returns the answer that the store would
// have given, as far as that can be known; for a key that is gone it is nil.
func settle(a *app.App, ctx context.Context, lost *client.LostAnswerError, budget time.Duration, back readBack) (client.Result, error) {
	if ctx.Err() == nil {
		a.Note(lost.Error() + "; reading back")
	}
	reply, holds, err := LookInto(ctx, lost, budget, back)
	if err == nil {
		a.Warn(holds, "")
	}
	return reply, err
}

// LookInto is settle without printing. It waits until the request has expired and then
// reads the key, within budget. holds is the warning for a key that is as the write wanted
// it.
func LookInto(ctx context.Context, lost *client.LostAnswerError, budget time.Duration, back readBack) (reply client.Result, holds string, err error) {
	if ctx.Err() != nil {
		return nil, "", &fault.UnknownError{Err: context.Cause(ctx), Why: "the key was not read back"}
	}
	limited, cancel := context.WithTimeout(ctx, max(time.Until(lost.Expires), 0)+budget)
	defer cancel()
	found, err := back(limited, lost)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", &fault.UnknownError{Err: context.Cause(ctx), Why: "reading the key back was interrupted"}
	case err == context.DeadlineExceeded:
		return nil, "", &fault.UnknownError{Err: lost.Err, Within: budget, Why: fmt.Sprintf("the key could not be read back within another %v", budget)}
	case err != nil:
		return nil, "", &fault.UnknownError{Err: lost.Err, Within: budget, Why: "reading the key back: " + fault.Message(err)}
	case found.Outcome == client.NotApplied:
		return nil, "", &fault.NotAppliedError{Err: lost.Err, Within: budget}
	case found.Outcome == client.OutcomeUnknown:
		return nil, "", &fault.UnknownError{Err: lost.Err, Within: budget, Why: nowIs(lost.Command, found.Now)}
	}
	holds = fmt.Sprintf("%s %s: %s; ", format.Verb(lost.Command.Verb()), format.Brief(lost.Command.Key()), fault.NoAnswer(lost.Err, budget))
	if !found.Now.Found {
		return nil, holds + "the key is gone, perhaps deleted by another client", nil
	}
	return found.Result, holds + "the key holds this value, perhaps set by another client", nil
}

// nowIs says what the key of a command holds and since when. A key was not read if what the
// command does is not known.
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
