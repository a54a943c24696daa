package client

import (
	"math/rand/v2"
	"time"
)

// backOff returns the pause before an attempt: none before the first, then 100 ms and
// twice as long each time up to 10 s, less up to a half at random, so that clients do not
// come back all at once.
func backOff(attempt int) time.Duration {
	if attempt == 0 {
		return 0
	}
	const first, longest = 100 * time.Millisecond, 10 * time.Second
	d := min(first<<min(attempt-1, 20), longest)
	return d/2 + rand.N(d/2)
}
