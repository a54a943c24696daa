package process

import (
	"io"
	"os"
	"sync"
)

// BackgroundOptions configure a [Background] command.
type BackgroundOptions struct {
	Args   []string // the name of the command, then its arguments
	Env    []string // NAME=VALUE; nil = sscli's environment
	Stdout io.Writer
	Stderr io.Writer

	// Temp is a directory that the guard removes if sscli dies before the command; empty = none.
	// On Windows, where a Background has no guard, nobody removes it.
	Temp string
}

func (o BackgroundOptions) environ() []string {
	if o.Env == nil {
		return os.Environ()
	}
	return o.Env
}

// pipes copy a command's output to writers.
type pipes struct {
	readers []*os.File
	copying sync.WaitGroup
}

// open returns a pipe for the command to write to, and copies its data to w.
func (p *pipes) open(w io.Writer) (*os.File, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.readers = append(p.readers, from)
	p.copying.Go(func() { _, _ = io.Copy(w, from) }) // until all writers close the pipe
	return to, nil
}

// finish waits until all writers have closed the pipes and their data is copied.
func (p *pipes) finish() {
	p.copying.Wait()
	for _, r := range p.readers {
		_ = r.Close()
	}
}
