//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// WatchJob sends to c when the terminal was resized, when the process was continued after a
// stop, and when it is asked to stop: then the caller gives the terminal back and calls
// [Stop]. end undoes that.
func WatchJob(c chan<- Job) (end func()) {
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-signals:
				job := JobResized
				switch s {
				case unix.SIGCONT:
					job = JobContinued
				case unix.SIGTSTP:
					job = JobStop
				}
				select {
				case c <- job:
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}

// Stop stops the process and its group, as the terminal does at Ctrl-Z, and returns when it
// is continued. It returns soon if nobody could continue it: the system does not let a
// terminal stop an orphaned process group.
func Stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	_ = unix.Kill(0, unix.SIGTTIN) // as Ctrl-Z, but that SIGTSTP may be caught
	select {
	case <-continued:
	case <-time.After(stopTime):
	}
}

// stopTime is how long Stop waits to be stopped.
const stopTime = 200 * time.Millisecond
