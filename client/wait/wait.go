// Package wait sleeps with a context.
package wait

import (
	"context"
	"time"
)

// For waits for d and reports whether it passed: false means that ctx ended first. If d is 0 or
// less, For returns at once, with false only if ctx has ended.
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
