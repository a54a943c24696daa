package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// A checkedLine is the key of a line, and the digest of its value, from the first pass over a source.
type checkedLine struct {
	key   string
	value digest
}

func check(e repl.Entry) checkedLine {
	l := checkedLine{key: e.Key}
	if e.Found {
		l.value = digestOf(e.Value)
	}
	return l
}

// checkedLines is a list of checkedLine. It is stored in blocks, so that growing copies no lines.
type checkedLines struct {
	blocks [][]checkedLine
	len    int
	keys   strings.Builder // holds the keys of the latest lines
}

const (
	blockLen = 4096     // lines in a block
	keysSize = 64 << 10 // bytes in a string of keys
)

// add appends l, and returns l with a copy of its key. The copy is part of a string with many other
// keys: a million small strings would cost the garbage collector more time than the parser takes.
func (c *checkedLines) add(l checkedLine) checkedLine {
	if c.len%blockLen == 0 {
		c.blocks = append(c.blocks, make([]checkedLine, blockLen))
	}
	if c.keys.Cap()-c.keys.Len() < len(l.key) {
		c.keys = strings.Builder{}
		c.keys.Grow(max(keysSize, len(l.key)))
	}
	begin := c.keys.Len()
	c.keys.WriteString(l.key)
	l.key = c.keys.String()[begin:]
	c.blocks[c.len/blockLen][c.len%blockLen] = l
	c.len++
	return l
}

func (c *checkedLines) at(n int) checkedLine { return c.blocks[n/blockLen][n%blockLen] }

// A line is a JSON line that the first pass has checked.
type line struct {
	checkedLine
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
	var checked checkedLines
	return func(ctx context.Context, values bool) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			in, err := open()
			if err != nil {
				yield(Entry{}, &fault.UsageError{Err: err})
				return
			}
			defer in.Close()
			if !values {
				checked = checkedLines{}
				entries := func(ctx context.Context) iter.Seq2[lineinput.Entry, error] { return lineinput.Entries(ctx, in, 1) }
				for e, err := range bulkread.Ahead(ctx, parsedAhead, entries) {
					l := checked.add(check(e.Entry))
					if !yield(Entry{Key: l.key, Found: e.Found}, inSource(name, err)) || err != nil {
						return
					}
				}
				return
			}
			n := 0
			for l := range lineinput.Lines(ctx, in, 1) {
				if l.Err == nil && n == checked.len {
					l.Err = changed()
				}
				if l.Err != nil {
					yield(Entry{}, inSource(name, l.Err))
					return
				}
				known := checked.at(n)
				line := &line{known, name, l.Number, l.Text}
				e := Entry{Key: known.key, Found: known.value != digest{}, Load: line.load}
				if n++; !yield(e, nil) {
					return
				}
			}
			if n < checked.len {
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
	if digestOf(guess) == l.value {
		return guess, nil
	}
	e, err := lineinput.ParseEntry(l.text)
	if err == nil && check(e) != l.checkedLine {
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
