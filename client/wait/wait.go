// Package wait sleeps with a context.
package wait

import (
	"context"
	"time"
)

// For waits for d to pass and reports whether it did: false means that ctx ended first. A
// duration of 0 or less has passed, unless ctx has ended.
func For(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
