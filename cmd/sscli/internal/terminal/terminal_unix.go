//go:build unix

package terminal

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sscli/sscli/internal/wait"
)

// device is the controlling terminal of the process.
const device = "/dev/tty"

// WatchJob sends a Job to c when the terminal is resized, when the process continues after a stop,
// and when the process gets SIGTSTP. After a JobStop, the caller must restore the terminal and call
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

// Stop stops the process group, as the terminal does for Ctrl-Z, and returns when the process is
// continued. In an orphaned process group, which no shell could continue, the kernel discards the
// stop signal, and Stop returns after the time of [wait.ForContinue].
func Stop() { wait.Stopped(unix.SIGTTIN) } // not SIGTSTP, which the process may catch

// UntilClosed returns a context that ends, with the cause [ErrClosed], when the reader of f, such as
// the other end of a pipe, is gone. It ends even while nothing is written to f.
func UntilClosed(parent context.Context, f *os.File) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	end, wake, err := os.Pipe()
	if err != nil {
		// Without the pipe, a closed output is seen only when the next write fails.
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
