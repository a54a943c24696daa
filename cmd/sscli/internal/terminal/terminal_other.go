//go:build !unix

package terminal

import (
	"context"
	"os"
)

// device is the name of the console on Windows.
const device = "CONIN$"

// WatchJob does nothing: there is no job control, and no signal when the terminal is resized.
func WatchJob(chan<- Job) (end func()) { return func() {} }

// Stop does nothing: there is no job control.
func Stop() {}

// UntilClosed returns a context that does not end when the output is closed: this system does not
// report that until the next write, which fails.
func UntilClosed(parent context.Context, _ *os.File) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}
