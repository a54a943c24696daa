//go:build unix

package terminal

import (
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
