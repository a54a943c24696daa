//go:build !unix

package output

import (
	"context"
	"os"
)

// UntilClosed cannot see a closed output here; the next write fails instead.
func UntilClosed(parent context.Context, _ *os.File) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}
