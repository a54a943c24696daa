//go:build !unix

package terminal

import "time"

// WatchJob sends to c now and then: there is no signal that the terminal was resized.
func WatchJob(c chan<- Job) (end func()) {
	tick, done, ended := time.NewTicker(time.Second), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-tick.C:
				select {
				case c <- JobResized:
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		tick.Stop()
		close(done)
		<-ended
	}
}

// Stop does nothing: there is no job control.
func Stop() {}
