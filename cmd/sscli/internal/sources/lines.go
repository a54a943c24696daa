package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// valueDigest returns the digest of the value of a line. Later passes over lines compare it with the digest of
// the value in the store, and parse a line again only if the two differ. It is zero if the key is missing.
func valueDigest(e repl.Entry) (d exchange.Digest) {
	if e.Found {
		d = exchange.DigestOf(e.Value)
	}
	return d
}

// A line is a JSON line that the first pass has checked.
type line struct {
	key    string
	value  exchange.Digest
	source string // name of the source
	number int
	text   string
}

// parsedAhead is the number of lines that the first pass over a source parses ahead, in another
// goroutine.
const parsedAhead = 128

// lines returns a source that reads a file written by export, or a statestore.json. Its first pass
// parses every line. Later passes expect the same lines, and parse a line only if its value must be
// loaded.
func lines(name string, open func() (io.ReadCloser, error)) source {
	var checked exchange.List // the key of each line, and the digest of its value
	return func(ctx context.Context, values bool) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			in, err := open()
			if err != nil {
				yield(Entry{}, &fault.UsageError{Err: err})
				return
			}
			defer in.Close()
			if !values {
				checked = exchange.List{}
				entries := func(ctx context.Context) iter.Seq2[lineinput.Entry, error] { return lineinput.Entries(ctx, in, 1) }
				for e, err := range exchange.Ahead(ctx, parsedAhead, entries) {
					checked.Add(e.Key, valueDigest(e.Entry))
					if !yield(Entry{Key: e.Key, Found: e.Found}, inSource(name, err)) || err != nil {
						return
					}
				}
				return
			}
			known := checked.Read()
			for l := range lineinput.Lines(ctx, in, 1) {
				key, value, ok := known.Next()
				if l.Err == nil && !ok {
					l.Err = changed()
				}
				if l.Err != nil {
					yield(Entry{}, inSource(name, l.Err))
					return
				}
				line := &line{key, value, name, l.Number, l.Text}
				e := Entry{Key: key, Found: value != exchange.Digest{}, Load: line.load}
				if !yield(e, nil) {
					return
				}
			}
			if _, _, more := known.Next(); more {
				yield(Entry{}, inSource(name, changed()))
			}
		}
	}
}

// changed returns the error for a source whose content has changed since the first pass.
func changed() error { return fault.Usagef("changed while it was read") }

// inSource adds the name of a source to a usage error. It returns other errors unchanged.
func inSource(name string, err error) error {
	if wrong, ok := errors.AsType[*fault.UsageError](err); ok {
		return &fault.UsageError{Err: fmt.Errorf("%s: %w", format.Path(name), wrong.Err)}
	}
	return err
}

// load implements [Entry.Load].
func (l *line) load(guess []byte) ([]byte, error) {
	if exchange.DigestOf(guess) == l.value {
		return guess, nil
	}
	e, err := lineinput.ParseEntry(l.text)
	if err == nil && (e.Key != l.key || valueDigest(e) != l.value) {
		err = changed()
	}
	if wrong, ok := errors.AsType[*fault.UsageError](err); ok {
		err = &fault.UsageError{Err: &repl.LineError{Number: l.number, Err: wrong.Err}}
	}
	if err != nil {
		return nil, inSource(l.source, err)
	}
	return e.Value, nil
}
