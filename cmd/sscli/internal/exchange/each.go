package exchange

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// An Entry is a key and what the store held when the key was read.
type Entry struct {
	Key string
	client.GetResult
	Err error // why the key could not be read; nil = it was read

	Old *Entry // the entry to compare this one with; nil = nothing to compare

	// Load is only for an entry that is the Old of another. It returns the Old entry's value, or
	// guess itself if guess equals that value. [Store.Each] calls Load with the value of the key in
	// the store, and sets the Old entry's Value to the result. If Load is nil, Value is already
	// set.
	Load func(guess []byte) ([]byte, error)
}

// WrittenSince reports whether the value was written at t or later, by the store's clock. It
// compares milliseconds, the resolution of a version.
func (e Entry) WrittenSince(t time.Time) bool {
	return !e.Version.IsZero() && !e.Version.Time().Before(t.Truncate(time.Millisecond))
}

// A Keys function calls add for each key to read from s. In the Entry it sets Key and, to compare
// the key with another entry, Old. An Entry whose Err is set keeps its place among the others, but its key
// is not read. An error from the function, such as one that add returned, ends the reading. ctx ends
// when the reading ends.
type Keys func(ctx context.Context, s *Store, add func(Entry) error) error

// Scan returns a [Keys] function for the keys that match a pattern, in the store's order. The store may
// return a key twice. After a lost connection the scan resumes at the same page. The next page is
// requested while add handles the keys of the current one.
func Scan(pattern string) Keys {
	return func(ctx context.Context, s *Store, add func(Entry) error) error {
		pages := func(ctx context.Context) iter.Seq2[client.ScanResult, error] { return s.Pages(ctx, pattern) }
		for page, err := range Ahead(ctx, 1, pages) {
			if err != nil {
				return s.Retry.Named(fault.DescribeScan(client.Scan(pattern, nil), err))
			}
			for _, key := range page.Keys {
				if err := add(Entry{Key: key}); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// Pages is like [client.Session.Scan], but requests a page again after a lost connection or a
// lost reply.
func (s *Store) Pages(ctx context.Context, pattern string) iter.Seq2[client.ScanResult, error] {
	return func(yield func(client.ScanResult, error) bool) {
		var page client.ScanResult
		for more := true; more; more = page.Next != nil {
			token := page.Next
			err := s.Retry.Do(ctx, func(ctx context.Context) (err error) {
				for page, err = range s.Session.ScanFrom(ctx, pattern, token) {
					break
				}
				return err
			})
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// listedAhead is how many keys are listed before there is room for them, so that listing and asking take turns once for
// many keys. An entry with an Old one that has a larger value is listed only when there is room for it.
const (
	listedAhead = 64
	listedValue = 1 << 10 // bytes
)

func (e Entry) isLarge() bool { return e.Old != nil && len(e.Old.Value) > listedValue }

// Each reads keys and calls do with each entry. Before it waits for an entry, and at the end, it
// calls flush, so that the user sees the entries so far. It returns the first error from do, from
// flush or from reading.
func (s *Store) Each(ctx context.Context, keys Keys, flush func() error, do func(Entry) error) (err error) {
	if s.oneCore {
		defer app.OneCore()()
	}
	ctx, cancel := context.WithCancel(ctx)
	var listing sync.WaitGroup
	defer func() {
		cancel()
		listing.Wait()
		err = cmp.Or(err, flush())
	}()
	w := NewWindow(s, Options{Flush: flush, Limited: ctx}, func(e Entry, o Outcome) error {
		switch {
		case e.Err != nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case o.Err != nil && !isAboutKey(o.Err):
			return o.Err
		case o.Err != nil:
			e.Err = o.Err
		default:
			e.GetResult = o.Result.(client.GetResult)
			if e.Old != nil && e.Old.Load != nil {
				if e.Old.Value, err = e.Old.Load(e.Value); err != nil {
					return err
				}
			}
		}
		return do(e)
	})
	listed, took, ended := make(chan Entry, listedAhead), make(chan struct{}, listedAhead+1), error(nil)
	listing.Go(func() {
		defer close(listed)
		ended = keys(ctx, s, func(e Entry) error {
			large := e.isLarge() // the window may replace the value of an entry that it has taken
			select {
			case listed <- e:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if !large {
				return nil
			}
			select {
			case <-took:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	for {
		e, ok, err := Next(ctx, w, listed)
		if e.isLarge() {
			took <- struct{}{}
		}
		switch {
		case err != nil:
			return err
		case !ok:
			for w.Len() > 0 && err == nil {
				err = w.finishFirst(ctx)
			}
			return cmp.Or(err, w.broken, ended)
		case e.Err != nil:
			err = w.Place(ctx, e, Outcome{})
		default:
			err = w.Add(ctx, e, new(client.Get(e.Key)))
		}
		if err != nil {
			return err
		}
	}
}

// Ahead returns a sequence with the elements of seq, which runs in its own goroutine. The caller gets
// the elements in batches of size: while it handles a batch, seq prepares the next one. When the
// caller leaves its loop, Ahead cancels the context that it passed to seq, and waits until seq has
// ended.
func Ahead[V any](ctx context.Context, size int, seq func(context.Context) iter.Seq2[V, error]) iter.Seq2[V, error] {
	type element struct {
		value V
		err   error
	}
	return func(yield func(V, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		ready, left := make(chan []element), make(chan struct{})
		var producer sync.WaitGroup
		producer.Go(func() {
			defer close(ready)
			var batch, spare []element
			send := func() bool {
				select {
				case ready <- batch: // the caller has taken batch, so it no longer uses spare
					batch, spare = spare[:0], batch
					return true
				case <-left:
					return false
				}
			}
			for value, err := range seq(ctx) {
				batch = append(batch, element{value, err})
				if len(batch) == size && !send() {
					return
				}
			}
			send()
		})
		defer producer.Wait()
		defer close(left)
		defer cancel()
		for batch := range ready {
			for _, e := range batch {
				if !yield(e.value, e.err) {
					return
				}
			}
		}
	}
}
