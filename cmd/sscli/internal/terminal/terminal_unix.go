//go:build unix

package terminal

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// device is the terminal that sscli was started from.
const device = "/dev/tty"

// WatchJob sends a Job to c when the terminal was resized, when the process was continued after
// a stop, and when it is asked to stop. For a stop the caller restores the terminal and calls
// [Stop]. Call end when done.
func WatchJob(c chan<- Job) (end func()) {
	signals := make(chan os.Signal, 8)
	jobs := map[os.Signal]Job{unix.SIGWINCH: JobResized, unix.SIGCONT: JobContinued, unix.SIGTSTP: JobStop}
	for s := range jobs {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case s := <-signals:
				select {
				case c <- jobs[s]:
				case <-done:
				}
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		sending.Wait()
	}
}

// Stop stops the process group, as the terminal does at Ctrl-Z, and returns when the process is
// continued. It returns soon if no shell could continue the process, because the system does not
// let a terminal stop an orphaned process group.
func Stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	_ = unix.Kill(0, unix.SIGTTIN) // not SIGTSTP, which the process may catch
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond):
	}
}

// UntilClosed returns a context that ends when the reader of f, such as the other end of a pipe,
// is gone. Its cause is then ErrClosed. It ends even if nothing is being written to f.
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
