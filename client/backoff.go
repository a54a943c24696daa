package client

import (
	"math/rand/v2"
	"time"
)

// backOff returns the pause before an attempt. Attempt 0 has no pause. Later pauses start at 100 ms
// and double up to 10 s; each is shortened by up to half at random, so that clients do not all
// reconnect at the same time.
func backOff(attempt int) time.Duration {
	if attempt == 0 {
		return 0
	}
	const first, longest = 100 * time.Millisecond, 10 * time.Second
	d := min(first<<min(attempt-1, 20), longest)
	return d/2 + rand.N(d/2)
}
