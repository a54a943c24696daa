//go:build unix

package output

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// UntilClosed returns a context that ends, with ErrClosed as its cause, when
// nobody can read what is written to f any more, also while nothing is written.
func UntilClosed(parent context.Context, f *os.File) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	end, wake, err := os.Pipe()
	if err != nil {
		// The next write fails instead.
		return ctx, func() { cancel(nil) }
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fds := []unix.PollFd{{Fd: int32(f.Fd())}, {Fd: int32(end.Fd()), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(fds, -1)
			switch {
			case err == unix.EINTR:
				continue
			case err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
				cancel(ErrClosed)
			}
			return
		}
	}()
	return ctx, func() {
		wake.Close()
		<-ended
		end.Close()
		cancel(nil)
	}
}
