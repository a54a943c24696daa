package verb

import (
	"context"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/format"
)

// settle finds out what became of a write without an answer. The reply it
// returns for one that holds is what the store would have answered, as far as
// that can be known; for a key that is gone it is nil.
func settle(a *cli.App, ctx context.Context, lost *client.LostAnswerError, budget time.Duration, back readBack) (client.Result, error) {
	if ctx.Err() == nil {
		a.Note(lost.Error() + "; reading back")
	}
	reply, holds, err := LookInto(ctx, lost, budget, back)
	if err == nil {
		a.Warn(holds, "")
	}
	return reply, err
}

// lookInto is settle without a word; holds is what the user should hear of a write
// that has come to what it wanted.
func LookInto(ctx context.Context, lost *client.LostAnswerError, budget time.Duration, back readBack) (reply client.Result, holds string, err error) {
	if ctx.Err() != nil {
		return reply, "", &explain.UnknownError{Err: context.Cause(ctx), Why: "it was not looked into"}
	}
	limited, cancel := context.WithTimeout(ctx, max(time.Until(lost.Expires), 0)+budget)
	defer cancel()
	found, err := back(limited, lost)
	switch {
	case err != nil && ctx.Err() != nil:
		return reply, "", &explain.UnknownError{Err: context.Cause(ctx), Why: "reading back was interrupted"}
	case err != nil:
		return reply, "", &explain.UnknownError{Err: lost.Err, Why: "reading back: " + err.Error()}
	case found.Outcome == client.NotApplied:
		return reply, "", &explain.NotAppliedError{Err: lost.Err}
	case found.Outcome == client.OutcomeUnknown:
		return reply, "", &explain.UnknownError{Err: lost.Err, Why: whyUnknown(lost, found.Now)}
	}
	holds = fmt.Sprintf("no answer came to %s %s (%s); the key ", format.Verb(lost.Command.Verb()), format.Brief(lost.Command.Key()), explain.Message(lost.Err))
	if !found.Now.Found {
		return nil, holds + "is gone", nil
	}
	return found.Result, holds + "holds your value", nil
}

func whyUnknown(lost *client.LostAnswerError, now client.GetResult) string {
	if now.Found {
		return "the key was written after the request, version " + now.Version.String()
	}
	if lost.Command.Verb() == wire.VerbSet {
		return "the key is missing now"
	}
	return "what the request does is not known"
}
