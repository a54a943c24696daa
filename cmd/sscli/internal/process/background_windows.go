package process

import (
	"os"
	"sync"
)

// A Background command runs while sscli does other work. It has no standard input, and leads a
// console process group, so that Ctrl-C reaches only sscli. It runs in a job object, of which sscli
// has the only handle, so Windows ends it when sscli ends for any reason.
type Background struct {
	job  *job
	done chan struct{}
	code int // exit status; valid when done is closed

	mu     sync.Mutex // held while the job's handle is used
	closed bool       // the handle is closed
}

// StartBackground starts a command. The error is a *[StartError].
func StartBackground(o BackgroundOptions) (*Background, error) {
	name := o.Args[0]
	path, err := find(name)
	if err != nil {
		return nil, err
	}
	b := &Background{done: make(chan struct{})}
	output, err := b.begin(path, o)
	if err != nil {
		return nil, newStartError(name, err)
	}
	go func() {
		defer close(b.done)
		b.code = <-b.job.exited
		b.mu.Lock()
		b.closed = true
		b.job.close() // ends processes that the command left behind
		b.mu.Unlock()
		output.finish()
	}()
	return b, nil
}

// begin starts the command with pipes for its output.
func (b *Background) begin(path string, o BackgroundOptions) (output *pipes, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	output = &pipes{}
	defer func() {
		if err != nil {
			output.finish()
		}
	}()
	stdout, err := output.open(o.Stdout)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, err := output.open(o.Stderr)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	b.job, err = startJob(path, o.Args, o.environ(), [3]*os.File{null, stdout, stderr})
	return output, err
}

// Done returns a channel that is closed once the command has ended and its output is written.
func (b *Background) Done() <-chan struct{} { return b.done }

// Wait waits for the command to end and returns its exit status. The error is nil; on Unix it may
// be a *[StartError].
func (b *Background) Wait() (int, error) {
	<-b.done
	return b.code, nil
}

// Stop kills the command and its descendants, and waits until the command has ended.
func (b *Background) Stop() {
	b.mu.Lock()
	if !b.closed {
		_ = b.job.end() // fails if the job has ended already
	}
	b.mu.Unlock()
	<-b.done
}
