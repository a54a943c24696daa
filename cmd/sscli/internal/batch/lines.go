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
	number int         // from 1; 0 if the error is not in a line
	text   string      // as it was written, with --echo or --load
	words  []repl.Word // without --load
	err    error       // why the line cannot be understood or read; nil if it can
	end    bool        // nothing can be read after it
}

// A lineReader reads the lines of a batch, up to readAhead lines before they run.
type lineReader struct {
	lines   chan batchLine
	stopped chan struct{}
}

// readAhead is the number of lines that may wait to run.
const readAhead = 256

// readLines starts to read. Nothing can interrupt a read from a terminal or a pipe, so after stop
// the goroutine ends with its read, or with the process.
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
		line.number, line.err = bad.Number, &explain.UsageError{Err: bad.Err}
	} else if err != nil && err != io.EOF {
		line.err, line.end = err, true
	}
	return line
}

// next returns the next line, and io.EOF after the last. A signal ends the batch, also while it
// waits for a line; it is the error of the next line then.
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

// stop ends the reader.
func (r *lineReader) stop() { close(r.stopped) }
