// Package lineinput reads the input of a batch, up to 256 lines ahead of the line that runs. The
// input consists of commands, one per line, or of JSON lines as `get -o json` prints them. Instead
// of JSON lines, the input may be a statestore.json, the file of Microsoft's development
// environment for WASM modules.
//
// The input is UTF-8, or UTF-16 with a byte order mark; see package files.
//
// [Read] sends the lines to a channel, and [Next] receives one unless a context ends first.
// [Entries] returns an iterator over the keys and values of JSON lines.
package lineinput

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/repl"
)

// A Line is a line of the input.
type Line struct {
	Number int         // from 1; 0 = Err is not about a line
	Text   string      // the line as written; a JSON line for each key of a statestore.json
	Words  []repl.Word // the words of a command; nil = Options.JSON is set
	Err    error       // why the line cannot be read or parsed; nil = no error
	End    bool        // Err ends the input: no line follows
}

// Options configure [Read].
type Options struct {
	JSON bool // the lines are JSON, not commands
	From int  // number of the first line to return; at least 1
}

// readAhead is the maximum number of lines in the channel of Read.
const readAhead = 256

// Read returns a channel with the lines of source. The channel is closed after the last line. stop ends
// the reading goroutine, which may first wait for its current read: nothing can interrupt a read from a
// terminal or a pipe.
func Read(source io.Reader, o Options) (lines <-chan Line, stop func()) {
	queue, stopped := make(chan Line, readAhead), make(chan struct{})
	go func() {
		defer close(queue)
		for line := range all(source, o) {
			select {
			case queue <- line:
			case <-stopped:
				return
			}
		}
	}()
	return queue, func() { close(stopped) }
}

// all returns an iterator over the lines of source, starting at line o.From.
func all(source io.Reader, o Options) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		lines, count := linesOf(source, o)
		for got, err := range lines {
			line := newLine(got, err)
			if line.Number < o.From && !line.End {
				continue
			}
			if !yield(line) || line.End {
				return
			}
		}
		if n := count(); o.From > n+1 {
			yield(Line{Err: fault.Usagef("--from-line %d: the input has %d lines", o.From, n), End: true})
		}
	}
}

// linesOf returns an iterator over the lines of source, and a function that returns their number after the
// iteration. The form of source depends on the options and, for JSON, on the first byte of source that
// is not white space.
func linesOf(source io.Reader, o Options) (lines iter.Seq2[repl.Line, error], count func() int) {
	source = files.NewTextReader(source)
	if !o.JSON {
		r := repl.NewReader(source)
		return toEnd(r.Next), r.Lines
	}
	counted := &lineCounter{source: source}
	buffered := bufio.NewReader(counted)
	if beginsArray(buffered) {
		return pairs(buffered), func() int { return counted.lines + 1 }
	}
	r := repl.NewReader(buffered)
	return toEnd(r.NextText), r.Lines
}

// toEnd returns an iterator over what next returns before io.EOF.
func toEnd(next func() (repl.Line, error)) iter.Seq2[repl.Line, error] {
	return func(yield func(repl.Line, error) bool) {
		for line, err := next(); err != io.EOF && yield(line, err); line, err = next() {
		}
	}
}

// newLine returns a line as read: got, or err.
func newLine(got repl.Line, err error) Line {
	line := Line{Number: got.Number, Text: got.Text, Words: got.Words, Err: err}
	if bad, ok := errors.AsType[*repl.LineError](err); ok {
		u := SyntaxError(bad)
		if errors.Is(err, repl.ErrIncomplete) {
			u.Hint = suggest.Try(`close the quote in the same line; \n in double quotes is a line end`)
		}
		line.Number, line.Err = bad.Number, u
		return line
	}
	line.End = err != nil
	if text, ok := errors.AsType[*files.TextError](err); ok {
		line.Err = &fault.UsageError{Err: text}
	} else if bad, ok := errors.AsType[*dataset.Error](err); ok {
		line.Number, line.Err = bad.Line, &fault.UsageError{Err: bad.Err}
	}
	return line
}

// SyntaxError returns the usage error for a line that cannot be split into words. Its hint is the line as
// it should be written, if that is clear.
func SyntaxError(bad *repl.LineError) *fault.UsageError {
	u := &fault.UsageError{Err: bad.Err}
	quote, ok := errors.AsType[*repl.QuoteError](bad.Err)
	if ok && len(quote.Line) <= maxHint {
		u.Hint = suggest.Say(quote.Line)
	}
	return u
}

// maxHint is the maximum length, in bytes, of a line that a hint repeats.
const maxHint = 160

// Next returns the next line. ok is false after the last line. When ctx has ended, Next returns a line
// whose Err is the cause of ctx, and whose Number is 0 if no line was waiting in the channel.
func Next(ctx context.Context, lines <-chan Line) (line Line, ok bool) {
	select {
	case line, ok = <-lines:
	default:
		select {
		case line, ok = <-lines:
		case <-ctx.Done():
			ok = true
		}
	}
	if ok {
		line = line.until(ctx)
	}
	return line, ok
}

// until returns the line. If ctx has ended, the Err of the returned line is the cause of ctx.
func (line Line) until(ctx context.Context) Line {
	if ctx.Err() != nil {
		line.Err, line.End = context.Cause(ctx), true
	}
	return line
}

// An Entry is the key and the value in a JSON line.
type Entry struct {
	Line int // from 1
	repl.Entry
}

// Entries returns an iterator over the JSON lines of source, starting at line number first. The
// iteration ends with the first error: the cause of ctx if ctx ends, a read error, or a
// *fault.UsageError about the content. If source is a terminal or a pipe, a goroutine may still
// read from source after the iteration, because nothing can interrupt the read.
func Entries(ctx context.Context, source io.Reader, first int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for line := range Lines(ctx, source, first) {
			e, err := Entry{Line: line.Number}, line.Err
			if err == nil {
				e.Entry, err = ParseEntry(line.Text)
			}
			if bad, ok := errors.AsType[*fault.UsageError](err); ok && line.Number > 0 {
				err = &fault.UsageError{Err: &repl.LineError{Number: line.Number, Err: bad.Err}}
			}
			if !yield(e, err) || line.End {
				return
			}
		}
	}
}

// Lines returns an iterator over the JSON lines of source, like [Entries], but does not parse them.
// When ctx has ended, the Err of the next line is the cause of ctx.
func Lines(ctx context.Context, source io.Reader, first int) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		o := Options{JSON: true, From: first}
		// Reading a regular file does not block, so it needs no goroutine.
		file, _ := source.(*os.File) // Stat of nil returns an error
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			for line := range all(untilReader{ctx, source}, o) {
				if !yield(line.until(ctx)) {
					return
				}
			}
			return
		}
		lines, stop := Read(source, o)
		defer stop()
		for line, ok := Next(ctx, lines); ok && yield(line); line, ok = Next(ctx, lines) {
		}
	}
}

// An untilReader reads until its context ends. Read then returns the cause.
type untilReader struct {
	ctx    context.Context
	source io.Reader
}

func (r untilReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.source.Read(p)
}

// ParseEntry parses a JSON line, and checks that its key and value can be sent. The error is a
// usage error.
func ParseEntry(text string) (repl.Entry, error) {
	e, err := repl.ParseEntry(text)
	if err == nil {
		err = client.Set(e.Key, e.Value).Check()
	}
	if err != nil {
		return e, &fault.UsageError{Err: err}
	}
	return e, nil
}
