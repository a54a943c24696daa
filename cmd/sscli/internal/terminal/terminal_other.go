//go:build !unix

package terminal

import (
	"context"
	"os"
)

// device is the name of the console's input on Windows.
const device = "CONIN$"

// WatchJob does nothing: this system has no job control, and no signal for a resized terminal.
func WatchJob(chan<- Job) (end func()) { return func() {} }

// Stop does nothing: this system has no job control.
func Stop() {}

// UntilClosed returns a context that does not end when the output is closed. This system reports a
// closed output only when the next write fails.
func UntilClosed(parent context.Context, _ *os.File) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}
