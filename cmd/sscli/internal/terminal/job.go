package terminal

// A Job is an event of job control, see [WatchJob].
type Job int

// The events of job control.
const (
	JobResized   Job = iota // the terminal may have another size
	JobContinued            // the process was continued
	JobStop                 // the process is asked to stop
)

// forward sends a Job to c for each value of from, until end is called.
func forward[T any](from <-chan T, c chan<- Job, job func(T) Job) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case v := <-from:
				select {
				case c <- job(v):
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
