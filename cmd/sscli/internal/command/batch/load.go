package batch

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/set"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// LoadOptions are the options of [Load].
type LoadOptions struct {
	Name      string    // of the command, for questions and hints
	Set       set.Flags // of every key
	Inflight  int       // lines under way; at least 1
	From      int       // the first line; at least 1
	KeepGoing bool      // continue after an error
}

// Load sets the keys of a file of JSON lines, or of standard input for "-", as batch --load does,
// and prints no results. It returns what became of the lines, also with an error, which is the
// first one in the order of the lines. A "no" is not an error here; it is counted. ran is false
// if no line was read.
func Load(ctx context.Context, a *app.App, from string, o LoadOptions) (sum format.BatchSummary, ran bool, err error) {
	if err := checkRange(o.Inflight, o.From); err != nil {
		return sum, false, err
	}
	b := newBatch(a, batchFlags{keepGoing: o.KeepGoing, load: true, inflight: o.Inflight, from: o.From, set: o.Set, silent: true})
	err = b.runFrom(ctx, from, o.Name)
	if errors.Is(err, fault.ErrNo) {
		err = nil
	}
	return b.summary.of(b.took), b.ran, err
}

// An Entry is a line of a file of JSON lines.
type Entry struct {
	Line int // from 1
	repl.Entry
}

// Entries returns the lines of source that [Load] would set, from line first on. An error comes
// last: the end of ctx, or a *fault.UsageError about a line. Nothing can interrupt a read from
// a pipe, so it may go on after the end.
func Entries(ctx context.Context, source io.Reader, first int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := readLines(source, batchFlags{load: true, from: first})
		defer lines.stop()
		for {
			line, ok := lines.next(ctx)
			if !ok {
				return
			}
			e, err := Entry{Line: line.number}, line.err
			if err == nil {
				e.Entry, err = parseEntry(line.text)
			}
			if bad, ok := errors.AsType[*fault.UsageError](err); ok && line.number > 0 {
				err = &fault.UsageError{Err: &repl.LineError{Number: line.number, Err: bad.Err}}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// parseEntry reads a JSON line. The error is a usage error.
func parseEntry(text string) (repl.Entry, error) {
	e, err := repl.ParseEntry(text)
	if err == nil {
		err = client.Set(e.Key, e.Value, client.SetOptions{}).Check()
	}
	if err != nil {
		return e, &fault.UsageError{Err: err}
	}
	return e, nil
}

// checkRange checks --inflight and --from-line.
func checkRange(inflight, from int) error {
	if inflight < 1 || inflight > maxInflight {
		return fault.Usagef("--inflight %d: want 1 to %d", inflight, maxInflight)
	}
	if from < 1 {
		return fault.Usagef("--from-line %d: want at least 1", from)
	}
	return nil
}
