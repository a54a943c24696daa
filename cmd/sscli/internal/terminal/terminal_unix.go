//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// device is the terminal that sscli was started from.
const device = "/dev/tty"

// WatchJob sends to c when the terminal was resized, when the process was continued after a
// stop, and when it is asked to stop. For a stop the caller restores the terminal and calls
// [Stop]. Call end when done.
func WatchJob(c chan<- Job) (end func()) {
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	stop := forward(signals, c, func(s os.Signal) Job {
		switch s {
		case unix.SIGCONT:
			return JobContinued
		case unix.SIGTSTP:
			return JobStop
		}
		return JobResized
	})
	return func() {
		signal.Stop(signals)
		stop()
	}
}

// Stop stops the process and its group, as the terminal does at Ctrl-Z, and returns when the
// process is continued. It returns soon if no shell could continue the process: the system does
// not let a terminal stop an orphaned process group.
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
