// Package retry repeats what may succeed later. Its one loop, [Do], carries the requests of the command line, the
// connections of a client, and those of the gateway. What also has events to handle during a pause, such as a lock or a
// watch, takes its pauses from [Pause], and so does a mirror, which counts failures of several steps. Two have pauses that
// do not grow: a store that is attached to a broker, so that two stores do not keep step, and `sscli check --listen`, which
// promises how soon it sees that a store has ended or answers again.
package retry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sscli/sscli/internal/wait"
)

// Forever is an Options.For without an end.
const Forever time.Duration = 1<<63 - 1

// Options say how long, how often and after which errors a call is repeated.
type Options struct {
	For     time.Duration    // the last attempt begins at most this long after the first one failed; 0 = one attempt
	Longest time.Duration    // the longest pause between two attempts; 0 = 10 s
	Again   func(error) bool // reports whether another attempt may succeed after this error
	Tell    func(error)      // called before each further attempt with the error of the last one; nil = none
}

// Do calls f until it succeeds. It also returns if f fails and no further attempt may succeed, if the time is over,
// or if ctx ends; it then returns the last error of f. The second attempt follows at once, and then the pauses are those
// of [Pause].
func Do(ctx context.Context, o Options, f func() error) error {
	var began time.Time
	for failures := 0; ; failures++ {
		err := f()
		if err == nil || ctx.Err() != nil || !o.Again(err) {
			return err
		}
		if failures == 0 {
			began = time.Now()
		}
		left := o.For - time.Since(began)
		if left <= 0 {
			return err
		}
		if o.Tell != nil {
			o.Tell(err)
		}
		if !wait.For(ctx, min(Pause(failures, o.Longest), left)) {
			return err
		}
	}
}

// Pause returns the pause after a number of failures; without a failure there is none. The first is 100 ms. Each
// later one is twice as long, up to longest, or 10 s if longest is 0. All are shortened by up to half at random, so
// that clients that lost the same broker do not all return at the same time.
func Pause(failures int, longest time.Duration) time.Duration {
	if failures == 0 {
		return 0
	}
	const first = 100 * time.Millisecond
	if longest == 0 {
		longest = 10 * time.Second
	}
	d := min(first<<min(failures-1, 20), longest)
	return d/2 + rand.N(d/2)
}
