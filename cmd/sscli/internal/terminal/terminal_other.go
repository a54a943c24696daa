//go:build !unix

package terminal

import "time"

// device is the name of the console on Windows.
const device = "CONIN$"

// WatchJob sends [JobResized] to c every second: no signal says that the terminal was resized.
// Call end when done.
func WatchJob(c chan<- Job) (end func()) {
	tick := time.NewTicker(time.Second)
	stop := forward(tick.C, c, func(time.Time) Job { return JobResized })
	return func() {
		tick.Stop()
		stop()
	}
}

// Stop does nothing: there is no job control.
func Stop() {}
