package batch

import (
	"context"
	"errors"
	"io"

	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/repl"
)

// A batchLine is a line of a batch.
type batchLine struct {
	number int
	text   string // with --echo or --load
	words  []repl.Word
	err    error // what makes no sense of it
	end    bool  // nothing can be read behind it
}

// A lineReader reads the lines of a batch a little ahead of who runs them.
type lineReader struct {
	lines   chan batchLine
	stopped chan struct{}
}

// readAhead is how many lines wait to be run, at most.
const readAhead = 256

// readLines begins to read. Nothing can interrupt a read from a terminal or a pipe,
// so after stop its goroutine ends with the read, or with the process.
func readLines(source io.Reader, f batchFlags) *lineReader {
	r := &lineReader{lines: make(chan batchLine, readAhead), stopped: make(chan struct{})}
	go func() {
		defer close(r.lines)
		in := repl.NewReader(source)
		for {
			line := readLine(in, f)
			if line.err == io.EOF {
				if f.from > in.Lines()+1 {
					line.err, line.end = explain.Usagef("--from-line %d: the input has %d lines", f.from, in.Lines()), true
				} else {
					return
				}
			} else if line.number < f.from && !line.end {
				continue
			}
			select {
			case r.lines <- line:
			case <-r.stopped:
				return
			}
			if line.end {
				return
			}
		}
	}()
	return r
}

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
		line.number, line.err = bad.Number, &explain.UsageError{Err: bad.Err}
	} else if err != nil && err != io.EOF {
		line.err, line.end = err, true
	}
	return line
}

// next returns the next line, and io.EOF behind the last. A signal ends the batch,
// also while it waits for a line; the error of the line that would have been next is
// the signal then.
func (r *lineReader) next(ctx context.Context) (batchLine, error) {
	line, ok := batchLine{}, true
	select {
	case line, ok = <-r.lines:
	default:
		select {
		case line, ok = <-r.lines:
		case <-ctx.Done():
		}
	}
	if !ok {
		return line, io.EOF
	}
	if ctx.Err() != nil {
		line.err, line.end = context.Cause(ctx), true
	}
	return line, line.err
}

// stop lets the reader end.
func (r *lineReader) stop() { close(r.stopped) }
