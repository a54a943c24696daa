//go:build !unix

package watch

import (
	"context"
	"os"
)

// untilClosed cannot see a closed output here; the next write will tell.
func untilClosed(parent context.Context, _ *os.File) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}
