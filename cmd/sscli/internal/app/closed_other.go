//go:build !unix

package app

import (
	"context"
	"os"
)

// UntilClosed cannot see a closed output here; the next write will tell.
func UntilClosed(parent context.Context, _ *os.File) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}
