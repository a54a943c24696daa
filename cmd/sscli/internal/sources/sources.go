// Package sources reads keys and their values from files: the output of `sscli export`, the
// statestore.json of Microsoft's WASM environment, a directory with a file for each key, data sets,
// and manifests. The commands apply, diff and serve use it.
//
//	set, err := sources.Open(ctx, []string{"defaults/", "site.yaml"}, sources.Options{})
//	for e, err := range set.Entries(ctx) {
//		if err != nil {
//			return err
//		}
//		value, err := e.Load(nil)
//		if err != nil {
//			return err
//		}
//		fmt.Printf("%s = %s\n", e.Key, value)
//	}
//
// Promises:
//
//   - [Open] checks every source before it returns, so that a mistake in any source is found before
//     the first write.
//   - Memory holds all keys but only a limited number of values. Standard input, a manifest and a
//     statestore.json are held in memory as a whole.
//   - Entries returns each key once. If several sources, or lines of a file, have the same key, the
//     last one wins.
//
// Files may change between Open and Entries. Then Load returns the value that Open found, or an error.
package sources

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// An Entry is a key and the value that the key should have.
type Entry struct {
	Key     string
	Found   bool              // false = the key was missing from the exported store
	Options client.SetOptions // TTL and Persist, from a manifest

	// Load returns the value. If guess equals the value, Load may return guess instead of reading a file or
	// parsing a line again. The error is a *fault.UsageError, or the cause of the context of Entries.
	Load func(guess []byte) ([]byte, error)
}

// Options configure [Open].
type Options struct {
	Prefix    string                                    // put before keys that are derived from names of files
	Stdin     func(ctx context.Context) (string, error) // reads the source "-"; nil = "-" is an error
	StdinName string                                    // of the source "-" in errors; empty = standard input

	Follow     bool              // accept links that lead out of a directory, and files of a manifest outside its directory
	AllowEmpty bool              // accept data sets without records
	Match      func(string) bool // counts the keys for [Set.Matching]; nil = none
	Inform     func(text string) // tells what the first pass skipped; nil = nobody
}

// A Set holds the keys of all sources.
type Set struct {
	sources  []source
	match    func(string) bool
	matching int
	empty    []string // the names of sources that hold no key
	keys     exchange.Seen
	last     map[string]int               // for each key with several entries, the number of its last entry, from 1
	first    []string                     // the first keys that have a value, at most MaxFirst
	options  map[string]client.SetOptions // only keys that have options
}

// MaxFirst is the maximum number of keys that [Set.First] returns.
const MaxFirst = 256

// A source returns an iterator over its entries. In the first call, which checks the source, values is
// false, and the caller loads no value. In later calls, values is true, and the source may rely on what
// the first call found.
type source func(ctx context.Context, values bool) iter.Seq2[Entry, error]

// Open opens and checks the named sources. The error is a *fault.UsageError, a read error, or the cause
// of ctx.
func Open(ctx context.Context, names []string, o Options) (*Set, error) {
	set := &Set{match: o.Match, keys: make(exchange.Seen), last: make(map[string]int), options: make(map[string]client.SetOptions)}
	for _, name := range names {
		s, err := open(ctx, name, o)
		if err != nil {
			return nil, err
		}
		set.sources = append(set.sources, s)
	}
	n := 0
	for i, source := range set.sources {
		empty := true
		for e, err := range source(ctx, false) {
			if err != nil {
				return nil, err
			}
			n++
			empty = empty && !e.Found
			set.add(e, n)
		}
		if empty {
			set.empty = append(set.empty, names[i])
		}
	}
	return set, nil
}

func (s *Set) add(e Entry, n int) {
	isNew := s.keys.Add(e.Key)
	if isNew && s.match != nil && s.match(e.Key) {
		s.matching++
	}
	switch {
	case !isNew:
		s.last[e.Key] = n
	case e.Found && len(s.first) < MaxFirst:
		s.first = append(s.first, e.Key)
	}
	if e.Options != (client.SetOptions{}) {
		s.options[e.Key] = e.Options
	} else {
		delete(s.options, e.Key)
	}
}

// Empty returns the names of the sources that hold no key with a value.
func (s *Set) Empty() []string { return s.empty }

// Matching returns the number of keys for which Options.Match returned true.
func (s *Set) Matching() int { return s.matching }

// Len returns the number of keys.
func (s *Set) Len() int { return len(s.keys) }

// Has reports whether the sources contain a key.
func (s *Set) Has(key string) bool { return s.keys.Has(key) }

// Options returns the options with which to set a key: TTL and Persist from a manifest.
func (s *Set) Options(key string) client.SetOptions { return s.options[key] }

// First returns the first keys that have a value, at most [MaxFirst].
func (s *Set) First() []string { return s.first }

// Entries returns an iterator over the entries, with each key once, in the order of the sources. An
// error ends the iteration.
func (s *Set) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		n := 0
		for e, err := range s.all(ctx, true) {
			n++
			if last := s.last[e.Key]; err == nil && last > n {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// all returns an iterator over the entries of all sources, which ends with the first error.
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

// open returns a source for a name. The type of the file and its extension determine the kind of
// source.
func open(ctx context.Context, name string, o Options) (source, error) {
	if files.InputName(name) == "-" {
		if o.Stdin == nil {
			return nil, fault.Usagef("-: standard input cannot be a source here")
		}
		text, err := o.Stdin(ctx)
		return lines(cmp.Or(o.StdinName, "standard input"), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }), err
	}
	info, err := os.Stat(name)
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		pathErr.Op = "open"
	}
	switch {
	case err != nil:
		return nil, &fault.UsageError{Err: err}
	case info.IsDir():
		return directory(name, o)
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return nil, fault.Usagef("%s: expected a directory, or a regular file, which is read twice", format.Path(name))
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return manifest(ctx, name, o)
	case ".csv":
		return fileList([]file{newFile(o.Prefix+keyOf(filepath.Base(name)), name)}, o), nil
	}
	return lines(name, func() (io.ReadCloser, error) { return files.Open(name) }), nil
}
