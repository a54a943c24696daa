package batch

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/repl"
)

// A batchLine is a line of a batch.
type batchLine struct {
	number int         // from 1; 0 if the error is not in a line
	text   string      // as it was written, with --echo or --load
	words  []repl.Word // without --load
	err    error       // why the line cannot be understood or read; nil if it can
	end    bool        // nothing can be read after it
}

// A lineReader reads the lines of a batch, up to readAhead lines before they run.
type lineReader struct {
	more    chan struct{} // there is something new for ready; capacity 1
	room    chan struct{} // lines were taken; capacity 1
	stopped chan struct{}

	mu   sync.Mutex
	read []batchLine // and not yet taken
	over bool        // there will be no more

	// Owned by the caller of ready, which takes all lines at once.
	taken []batchLine
	at    int // of taken
}

// readAhead is the number of lines that may wait to run.
const readAhead = 256

// readLines starts to read. Nothing can interrupt a read from a terminal or a pipe, so after stop
// the goroutine ends with its read, or with the process.
func readLines(source io.Reader, f batchFlags) *lineReader {
	r := &lineReader{more: make(chan struct{}, 1), room: make(chan struct{}, 1), stopped: make(chan struct{})}
	go func() {
		defer r.add(nil)
		in := repl.NewReader(source)
		for {
			line := readLine(in, f)
			if line.err == io.EOF {
				if f.from > in.Lines()+1 {
					line.err, line.end = fault.Usagef("--from-line %d: the input has %d lines", f.from, in.Lines()), true
				} else {
					return
				}
			} else if line.number < f.from && !line.end {
				continue
			}
			if !r.add(&line) || line.end {
				return
			}
		}
	}()
	return r
}

// add adds a line once there is room, or nil at the end. It returns false after stop.
func (r *lineReader) add(line *batchLine) bool {
	for {
		r.mu.Lock()
		full := len(r.read) == readAhead
		switch {
		case line == nil:
			r.over = true
		case !full:
			r.read = append(r.read, *line)
		}
		r.mu.Unlock()
		signal(r.more)
		if line == nil || !full {
			return true
		}
		select {
		case <-r.room:
		case <-r.stopped:
			return false
		}
	}
}

// signal wakes the receiver of a channel with the capacity 1.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// readLine reads one line. Its err is io.EOF after the last line.
func readLine(in *repl.Reader, f batchFlags) batchLine {
	next := in.Next
	if f.load {
		next = in.NextText
	}
	got, err := next()
	line := batchLine{number: got.Number, words: got.Words, err: err}
	if f.echo || f.load {
		line.text = got.Text
	}
	if bad, ok := errors.AsType[*repl.LineError](err); ok {
		line.number, line.err = bad.Number, &fault.UsageError{Err: bad.Err}
	} else if err != nil && err != io.EOF {
		line.err, line.end = err, true
	}
	return line
}

// ready returns the next line if there is one already, and io.EOF after the last. A signal ends
// the batch, also while there is no line; it is the error of the next line then.
func (r *lineReader) ready(ctx context.Context) (line batchLine, ok bool, err error) {
	if r.at == len(r.taken) {
		r.mu.Lock()
		r.taken, r.read, r.at = r.read, r.taken[:0], 0
		over := r.over
		r.mu.Unlock()
		switch {
		case len(r.taken) > 0:
			signal(r.room)
		case over:
			return line, true, io.EOF
		case ctx.Err() == nil:
			return line, false, nil
		}
	}
	if r.at < len(r.taken) {
		line, r.taken[r.at] = r.taken[r.at], batchLine{}
		r.at++
	}
	if ctx.Err() != nil {
		line.err, line.end = context.Cause(ctx), true
	}
	return line, true, line.err
}

// next is ready, and waits for a line if there is none.
func (r *lineReader) next(ctx context.Context) (batchLine, error) {
	for {
		if line, ok, err := r.ready(ctx); ok {
			return line, err
		}
		select {
		case <-r.more:
		case <-ctx.Done():
		}
	}
}

// stop ends the reader.
func (r *lineReader) stop() { close(r.stopped) }
