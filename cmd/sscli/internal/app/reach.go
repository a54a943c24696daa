package app

import (
	"context"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/wait"
)

// Reach calls attempt, and repeats the call while the broker or its store cannot be reached. The
// last attempt begins when budget has passed, at the latest; 0 = one attempt. attempt must call
// reached when the broker has answered. Reach does not repeat an attempt that has called reached or
// may have sent a write. It reports on standard error that it is trying again.
func (a *App) Reach(ctx context.Context, budget time.Duration, attempt func(reached func()) error) error {
	const firstPause, maxPause = 100 * time.Millisecond, 2 * time.Second
	away := Outage{Notify: a.Notify}
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		there := false
		err := attempt(func() {
			there = true
			away.Over("")
		})
		if there || ctx.Err() != nil {
			return err
		}
		if !a.isAway(err) {
			away.Over("")
			return err
		}
		left := budget - time.Since(began)
		if left <= 0 {
			if away.Away() {
				err = fmt.Errorf("no answer for %v: %w", away.Lasted(), err)
			}
			return err
		}
		away.Trouble(err, fmt.Sprintf("trying again for up to %v", budget))
		if !wait.For(ctx, min(pause, left)) {
			return context.Cause(ctx)
		}
	}
}

// isAway reports whether an error means that the store did nothing and that a later attempt may
// succeed: the broker or its store could not be reached, or did not answer a read.
func (a *App) isAway(err error) bool {
	if err == nil || client.IsPermanent(err) || fault.IsA[*client.LostAnswerError](err) ||
		fault.IsA[*fault.NotAppliedError](err) || fault.IsA[*fault.UnknownError](err) {
		return false
	}
	f, printed := a.Explain(err)
	return !printed && f.Kind != "error" && (f.Code == fault.CodeConnection || fault.IsTimeout(err))
}
