// Package sources reads keys and their values from files: what `sscli export` writes, the
// statestore.json of Microsoft's WASM environment, a directory with a file for each key, data sets,
// and manifests. The commands apply, diff and serve take sources.
//
//	set, err := sources.Open(ctx, []string{"defaults/", "site.yaml"}, sources.Options{})
//	for e, err := range set.Entries(ctx) {
//		if err != nil {
//			return err
//		}
//		fmt.Printf("%s = %s\n", e.Key, e.Value)
//	}
//
// Promises:
//
//   - [Open] reads every source once and checks it, so that nothing is written because of sources of
//     which the last is wrong.
//   - Memory holds the names of the keys, and of their values one at a time, except those of
//     standard input and of small files.
//   - Each key comes once. If sources, or lines of a file, have the same key, the last one counts.
//
// Not promised: a snapshot of files that change between Open and Entries.
package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// An Entry is a key as it should be.
type Entry struct {
	repl.Entry                   // Found is false for a line of a key that was missing when it was exported
	Options    client.SetOptions // TTL and Persist, from a manifest
}

// Options configure [Open].
type Options struct {
	Prefix string                                    // before the keys that are named by files
	Stdin  func(ctx context.Context) ([]byte, error) // reads standard input for the source "-"; nil: there is none
}

// A Set is the keys of all sources.
type Set struct {
	sources []source
	last    map[string]int               // the number of the entry that counts, by key; from 1
	first   []string                     // the first keys, at most MaxFirst
	options map[string]client.SetOptions // of the keys that have any
}

// MaxFirst is the number of keys that [Set.First] returns at most.
const MaxFirst = 256

// A source is a sequence of entries that can be read several times. Unless values is true, the
// sequence is only to be checked, and Value may be nil.
type source func(ctx context.Context, values bool) iter.Seq2[Entry, error]

// Open reads sources by their names. The error is a *fault.UsageError, or that of ctx.
func Open(ctx context.Context, names []string, o Options) (*Set, error) {
	set := &Set{last: make(map[string]int), options: make(map[string]client.SetOptions)}
	for _, name := range names {
		s, err := open(ctx, name, o)
		if err != nil {
			return nil, err
		}
		set.sources = append(set.sources, s)
	}
	n := 0
	for e, err := range set.all(ctx, false) {
		if err != nil {
			return nil, err
		}
		n++
		known := len(set.last)
		if set.last[e.Key] = n; e.Found && len(set.first) < MaxFirst && len(set.last) > known {
			set.first = append(set.first, e.Key)
		}
		if e.Options != (client.SetOptions{}) {
			set.options[e.Key] = e.Options
		} else {
			delete(set.options, e.Key)
		}
	}
	return set, nil
}

// Len returns the number of keys.
func (s *Set) Len() int { return len(s.last) }

// Has reports whether the sources have a key.
func (s *Set) Has(key string) bool { return s.last[key] > 0 }

// Options returns how to set a key: TTL and Persist.
func (s *Set) Options(key string) client.SetOptions { return s.options[key] }

// First returns the first keys, at most [MaxFirst].
func (s *Set) First() []string { return s.first }

// Entries returns the keys, each once, in the order of the sources. An error comes last.
func (s *Set) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		n := 0
		for e, err := range s.all(ctx, true) {
			if n++; err == nil && s.last[e.Key] != n {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// all returns the entries of all sources, up to the first error.
func (s *Set) all(ctx context.Context, values bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, source := range s.sources {
			for e, err := range source(ctx, values) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// open finds out what a source is.
func open(ctx context.Context, name string, o Options) (source, error) {
	if name == "-" {
		if o.Stdin == nil {
			return nil, fault.Usagef("-: standard input cannot be a source here")
		}
		text, err := o.Stdin(ctx)
		return lines("standard input", func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }), err
	}
	info, err := os.Stat(name)
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		pathErr.Op = "open"
	}
	switch {
	case err != nil:
		return nil, &fault.UsageError{Err: err}
	case info.IsDir():
		return directory(name, o.Prefix)
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return nil, fault.Usagef("%s: expected a directory, or a regular file, which is read twice", format.BriefWord(name))
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return manifest(name)
	case ".csv":
		return files([]file{newFile(o.Prefix+keyOf(filepath.Base(name)), name)}), nil
	}
	return lines(name, func() (io.ReadCloser, error) { return os.Open(name) }), nil
}

// maxKept is the size in bytes of entries that stay in memory after a check: to parse them once more
// takes longer than to read as many keys from a store.
const maxKept = 32 << 20

// lines is the source of JSON lines as export writes them, or of a statestore.json.
func lines(name string, open func() (io.ReadCloser, error)) source {
	var kept []repl.Entry // of the check; nil if there are too many
	return func(ctx context.Context, values bool) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			if values && kept != nil {
				for _, e := range kept {
					if !yield(Entry{Entry: e}, nil) {
						return
					}
				}
				return
			}
			in, err := open()
			if err != nil {
				yield(Entry{}, &fault.UsageError{Err: err})
				return
			}
			defer in.Close()
			var all []repl.Entry
			size := 0
			for line, err := range lineinput.Entries(ctx, in, 1) {
				if wrong, ok := errors.AsType[*fault.UsageError](err); ok {
					err = &fault.UsageError{Err: fmt.Errorf("%s: %w", format.BriefWord(name), wrong.Err)}
				}
				if !yield(Entry{Entry: line.Entry}, err) || err != nil {
					return
				}
				const overhead = 128
				if size += len(line.Key) + len(line.Value) + overhead; size <= maxKept && !values {
					all = append(all, line.Entry)
				} else {
					all = nil
				}
			}
			if size <= maxKept {
				kept = all
			}
		}
	}
}

// check returns an error about a key that the store would not accept.
func check(key string, value []byte) error {
	return client.Set(key, value, client.SetOptions{}).Check()
}
