package verb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
	"github.com/sscli/sscli/format"
)

// A Seen holds the names of keys and the states in which they were read, but not their values.
// Keys that the user agrees to delete are deleted only if they are still in that state.
type Seen []seenKey

type seenKey struct {
	name  string
	state State
}

// Look reads the keys that match a pattern, except those that skip, unless nil, selects. It calls
// refuse for each key that could not be read; that key is left out.
func Look(ctx context.Context, store *bulkread.Store, pattern string, skip func(key string) bool, refuse func(error)) (Seen, error) {
	var seen Seen
	noFlush := func() error { return nil }
	matching := func(ctx context.Context, s *bulkread.Store, add func(bulkread.Entry) error) error {
		return bulkread.Scan(pattern)(ctx, s, func(e bulkread.Entry) error {
			if skip != nil && skip(e.Key) {
				return nil
			}
			return add(e)
		})
	}
	err := store.Each(ctx, matching, noFlush, func(e bulkread.Entry) error {
		switch {
		case e.Err != nil:
			refuse(e.Err)
		case e.Found:
			seen = append(seen, seenKey{e.Key, StateOf(e.GetResult)})
		}
		return nil
	})
	// The store may list a key twice. The first state counts.
	slices.SortStableFunc(seen, func(a, b seenKey) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(seen, func(a, b seenKey) bool { return a.name == b.name }), err
}

// Name returns the name of the i-th key. The keys are sorted by name.
func (s Seen) Name(i int) string { return s[i].name }

// Again reads the keys again, and calls do with each. same reports whether the key is in the state in
// which it was seen. flush is as in [bulkread.Store.Each].
func (s Seen) Again(ctx context.Context, store *bulkread.Store, flush func() error, do func(now bulkread.Entry, same bool) error) error {
	names := func(_ context.Context, _ *bulkread.Store, add func(bulkread.Entry) error) error {
		for i := range s {
			if err := add(bulkread.Entry{Key: s[i].name}); err != nil {
				return err
			}
		}
		return nil
	}
	i := -1
	return store.Each(ctx, names, flush, func(now bulkread.Entry) error {
		i++
		return do(now, now.Err == nil && s[i].state == StateOf(now.GetResult))
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
