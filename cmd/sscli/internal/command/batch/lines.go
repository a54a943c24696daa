package batch

import (
	"context"
	"errors"
	"io"

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

// readAhead is the number of lines that may wait to run.
const readAhead = 256

// A lineReader reads the lines of a batch before they run.
type lineReader struct {
	lines   chan batchLine // closed after the last line
	stopped chan struct{}
}

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
				if f.from <= in.Lines()+1 {
					return
				}
				line.err, line.end = fault.Usagef("--from-line %d: the input has %d lines", f.from, in.Lines()), true
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
		line.number, line.err = bad.Number, &fault.UsageError{Err: bad.Err}
	} else if err != nil && err != io.EOF {
		line.err, line.end = err, true
	}
	return line
}

// next returns the next line; ok is false after the last. When ctx ends, that is the error of the
// next line, or of a line without a number if there is none yet.
func (r *lineReader) next(ctx context.Context) (line batchLine, ok bool) {
	select {
	case line, ok = <-r.lines:
	default:
		select {
		case line, ok = <-r.lines:
		case <-ctx.Done():
			ok = true
		}
	}
	if ok && ctx.Err() != nil {
		line.err, line.end = context.Cause(ctx), true
	}
	return line, ok
}

// stop ends the reader.
func (r *lineReader) stop() { close(r.stopped) }
