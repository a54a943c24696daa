package app

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/retry"
)

// A Retry repeats calls that the broker or its store does not answer, and reports the outage. Several goroutines may
// use it: requests that were in flight when an outage began belong to that outage.
type Retry struct {
	For     time.Duration // how long to repeat a call; 0 = one attempt
	Timeout time.Duration // of each attempt; 0 = client.DefaultTimeout
	Context string        // the context's name, for messages; empty = messages name none
	Outage  Outage        // the zero value prints nothing

	// Repeats reports whether a later attempt may succeed after an error; nil = [fault.IsAway].
	Repeats func(error) bool

	mu     sync.Mutex
	ended  time.Time // when the last outage ended
	gaveUp time.Time // when a call was last repeated in vain
}

// NewRetry returns a Retry that reports outages on standard error.
func (a *App) NewRetry(budget time.Duration) *Retry {
	return &Retry{For: budget, Timeout: a.Timeout(), Outage: Outage{Notify: a.Notify}}
}

// Do calls f, and calls it again for up to r.For while the error is one that r.Repeats. After a timeout, an attempt has
// a quarter of that time, so that there are several. If the broker is still away at the end, the error says for how
// long, unless r.Repeats is set.
func (r *Retry) Do(ctx context.Context, f func(context.Context) error) error {
	return r.Again(ctx, time.Time{}, nil, f)
}

// Again is like Do after a first attempt, made at the time sent, that returned err; nil = there was none. If another call
// has been repeated in vain since then, this call is not repeated: of many calls that wait at the same time, each would
// wait as long again.
func (r *Retry) Again(ctx context.Context, sent time.Time, err error, f func(context.Context) error) error {
	repeats := r.Repeats
	if repeats == nil {
		repeats = fault.IsAway
	}
	last, made, budget := err, err != nil, r.For
	if made && r.inVain(sent) {
		budget = 0
	}
	err = retry.Do(ctx, retry.Options{For: budget, Longest: 2 * time.Second, Again: repeats, Tell: func(err error) { r.trouble(sent, err) }}, func() error {
		if made {
			made = false
			return last
		}
		limit := cmp.Or(r.Timeout, client.DefaultTimeout)
		if fault.IsTimeout(last) {
			limit = min(limit, r.For/4)
		}
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		sent = time.Now()
		last = f(limited)
		return last
	})
	if err == nil || !repeats(err) {
		r.Answered(sent)
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if budget > 0 {
		r.gaveUp = time.Now()
	}
	if r.Repeats == nil && ctx.Err() == nil && r.Outage.Away() {
		err = fmt.Errorf("no answer for %v: %w", r.Outage.Lasted(), err)
	}
	return err
}

// inVain reports whether another call was repeated in vain since a time.
func (r *Retry) inVain(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return since.Before(r.gaveUp)
}

// trouble reports the error of an attempt that began at the time sent, unless it was in flight when an outage began
// that is over.
func (r *Retry) trouble(sent time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Outage.Away() && sent.Before(r.ended) {
		return
	}
	doing := fmt.Sprintf("trying again for up to %v", r.For)
	switch {
	case fault.IsA[*client.LostError](err):
		doing = "connecting again"
	case fault.IsTimeout(err) && !fault.IsConnection(err):
		doing = fmt.Sprintf("asking again for up to %v", r.For)
	}
	r.Outage.Trouble(r.Named(err), doing)
}

// Answered ends the outage, if one began before the time sent of a request that was answered.
func (r *Retry) Answered(sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Outage.Away() || sent.Before(r.Outage.Began()) {
		return
	}
	again := ""
	if r.Context != "" {
		again = ", context " + r.Context
	}
	r.Outage.Over(again)
	r.ended = time.Now()
}

// Named adds the context's name to an error.
func (r *Retry) Named(err error) error {
	if r.Context == "" {
		return err
	}
	return fmt.Errorf("context %s: %w", r.Context, err)
}
