package terminal

// A Job is what the terminal, or the shell, does with the process, see [WatchJob].
type Job int

// The jobs.
const (
	JobResized   Job = iota // the terminal may have another size
	JobContinued            // the process was continued
	JobStop                 // the process is asked to stop
)
