// Package wait waits for a time to pass, for a context to end, or for a stopped process to be continued.
package wait

import (
	"context"
	"time"
)

// For waits for d and returns true, or returns false if ctx ends first. If d is 0 or less, For returns
// immediately, with false only if ctx has ended.
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
