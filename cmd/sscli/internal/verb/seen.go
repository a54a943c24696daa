package verb

import (
	"context"
	"fmt"
	"iter"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/format"
)

// A Seen holds the names of keys and the states in which they were read, but not their values.
// Keys that the user agrees to delete are deleted only if they are still in that state.
type Seen struct {
	keys        exchange.List
	first, last string // by name
}

// Look reads the keys that match a pattern. It leaves out the keys for which skip, if not nil, returns true. It calls
// refuse for each key that could not be read; that key is left out.
func Look(ctx context.Context, store *exchange.Store, pattern string, skip func(key string) bool, refuse func(error)) (*Seen, error) {
	seen, known := new(Seen), make(exchange.Seen)
	noFlush := func() error { return nil }
	matching := func(ctx context.Context, s *exchange.Store, add func(exchange.Entry) error) error {
		return exchange.Scan(pattern)(ctx, s, func(e exchange.Entry) error {
			if skip != nil && skip(e.Key) || !known.Add(e.Key) { // the store may list a key twice
				return nil
			}
			return add(e)
		})
	}
	err := store.Each(ctx, matching, noFlush, func(e exchange.Entry) error {
		switch {
		case e.Err != nil:
			refuse(e.Err)
		case e.Found:
			seen.add(e)
		}
		return nil
	})
	return seen, err
}

func (s *Seen) add(e exchange.Entry) {
	if s.Len() == 0 || e.Key < s.first {
		s.first = e.Key
	}
	s.last = max(s.last, e.Key)
	s.keys.Add(e.Key, StateOf(e.GetResult).sum)
}

// Len returns the number of keys.
func (s *Seen) Len() int { return s.keys.Len() }

// Range returns the first and the last key by name.
func (s *Seen) Range() (first, last string) { return s.first, s.last }

// Names returns an iterator over the keys, in the order in which the store listed them.
func (s *Seen) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		r := s.keys.Read()
		for name, _, ok := r.Next(); ok && yield(name); name, _, ok = r.Next() {
		}
	}
}

// Again reads the keys again, and calls do with each. same reports whether the key is in the state in
// which it was seen. flush is as in [exchange.Store.Each].
func (s *Seen) Again(ctx context.Context, store *exchange.Store, flush func() error, do func(now exchange.Entry, same bool) error) error {
	names := func(_ context.Context, _ *exchange.Store, add func(exchange.Entry) error) error {
		for name := range s.Names() {
			if err := add(exchange.Entry{Key: name}); err != nil {
				return err
			}
		}
		return nil
	}
	before := s.keys.Read()
	return store.Each(ctx, names, flush, func(now exchange.Entry) error {
		_, sum, _ := before.Next()
		return do(now, now.Err == nil && StateOf(now.GetResult) == State{Found: true, sum: sum})
	})
}

// LeftAlone returns the message about a key that was not written, because another client changed it
// after it was read. now is the current content of the key.
func LeftAlone(key string, now client.GetResult) string {
	holds := "it is missing now"
	if now.Found {
		holds = "it holds " + format.Brief(string(now.Value))
		if !now.Version.IsZero() {
			holds += " since " + now.Version.String()
		}
	}
	return fmt.Sprintf("%s was left alone, because another client changed it after it was read: %s", format.BriefWord(key), holds)
}
