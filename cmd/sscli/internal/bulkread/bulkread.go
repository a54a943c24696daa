// Package bulkread reads many keys with their values. The keys come from SCAN, page by page,
// or from the caller. Up to [Window] GETs are in flight at a time.
//
//	s := bulkread.NewStore(a, session)
//	err := s.Each(ctx, bulkread.Scan("thermostat/*"), a.Flush, func(e bulkread.Entry) error { … })
//
// Promises:
//
//   - Entries come in the order of the keys. Memory holds at most [Window] values at a time, fewer
//     if they are large, however many keys there are.
//   - A key that the store refuses becomes an entry with an error; the other keys are still read.
//   - After a lost connection or a lost reply, the GET or the page of SCAN is requested again, for up
//     to Store.RetryFor. A message reports the outage.
//
// The entries are not a snapshot, which the store does not offer: the values are read at
// different times.
package bulkread

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
				return s.named(fault.DescribeScan(client.Scan(pattern, nil), err))
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
		var token []byte
		var lost error // why the last page must be requested again
		for {
			sent := time.Now()
			page, err := s.page(ctx, pattern, token, lost)
			if lost = err; err != nil {
				if s.retry(ctx, sent, err) {
					continue
				}
				yield(client.ScanResult{}, err)
				return
			}
			s.answered(sent)
			if !yield(page, nil) || page.Next == nil {
				return
			}
			token = page.Next
		}
	}
}

// page reads the page after token. lost is the error of the previous attempt; nil = first attempt.
func (s *Store) page(ctx context.Context, pattern string, token []byte, lost error) (page client.ScanResult, err error) {
	ctx, cancel := s.limit(ctx, lost)
	defer cancel()
	for page, err = range s.Session.ScanFrom(ctx, pattern, token) {
		break
	}
	return page, err
}

// A Store reads from one store over a session. Only a Store from [NewStore] reports outages.
type Store struct {
	Session  *client.Session
	RetryFor time.Duration // how long to repeat a request that gets no reply; 0 = client.DefaultTimeout
	Context  string        // the store's context, for messages; empty = messages name none

	oneCore bool // Each uses one core

	mu     sync.Mutex
	outage app.Outage
	ended  time.Time     // when the last outage ended
	pause  time.Duration // pause before the next attempt
	silent bool          // a request after one that timed out got no reply either
}

// NewStore returns a Store that reads over s and reports outages on standard error. RetryFor is
// --retry-for or, without that flag, --timeout.
func NewStore(a *app.App, s *client.Session) *Store {
	return &Store{
		Session: s, RetryFor: cmp.Or(a.Settings.RetryFor, a.Timeout()), oneCore: !a.Settings.Embedded,
		outage: app.Outage{Notify: a.Notify},
	}
}

// Window is the maximum number of GETs in flight. [Store.Each] begins with firstWindow. After each reply
// it allows one more, or one fewer if so many values of that length would exceed windowBytes bytes.
const (
	Window      = 256
	firstWindow = 8
	windowBytes = 16 << 20
)

// A request is a key whose GET is in flight.
type request struct {
	entry Entry
	sent  time.Time
	reply *client.InFlight // nil if nothing was sent
	err   error            // why nothing was sent
	end   error            // the error that the Keys function returned; nil = the request is for a key
}

// Each reads keys and calls do with each entry. Before it waits for an entry, and at the end, it
// calls flush, so that the user sees the entries so far. It returns the first error from do, from
// flush or from reading.
func (s *Store) Each(ctx context.Context, keys Keys, flush func() error, do func(Entry) error) (err error) {
	if s.oneCore {
		defer app.OneCore()()
	}
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan request, Window+1) // has room for all GETs in flight, and for an error from keys
	places := make(chan struct{}, Window) // a place for each GET that may be sent now
	window := firstWindow                 // number of free places plus GETs in flight
	for range window {
		places <- struct{}{}
	}
	var sending sync.WaitGroup
	sending.Go(func() { s.send(ctx, keys, places, queue) })
	defer func() {
		cancel()
		sending.Wait()
		err = cmp.Or(err, flush())
	}()
	for {
		if len(queue) == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		q, ok := <-queue
		if !ok {
			return context.Cause(ctx)
		}
		if q.reply != nil && !q.reply.Over() {
			if err := flush(); err != nil {
				return err
			}
		}
		e, err := s.entry(ctx, q)
		if err == nil {
			err = do(e)
		}
		if err != nil {
			return err
		}
		window--
		for range min(2, max(1, min(Window, windowBytes/(len(e.Value)+1)))-window) {
			places <- struct{}{}
			window++
		}
	}
}

// send takes a place from places for each key, queues the key's GET, and puts the request into
// queue. It closes queue at the end.
func (s *Store) send(ctx context.Context, keys Keys, places <-chan struct{}, queue chan<- request) {
	defer close(queue)
	pipe := s.Session.Pipeline(Window)
	err := keys(ctx, s, func(e Entry) error {
		select {
		case <-places:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		q := request{entry: e, sent: time.Now()}
		if e.Err == nil {
			q.reply, q.err = pipe.Queue(ctx, client.Get(e.Key)) // sent at the latest when Each waits for the reply
		}
		queue <- q
		return nil
	})
	if err != nil {
		queue <- request{end: err}
	}
}

// entry waits for the reply to a request. An error ends the reading.
func (s *Store) entry(ctx context.Context, q request) (Entry, error) {
	if q.end != nil || q.entry.Err != nil {
		return q.entry, q.end
	}
	e, get := q.entry, client.Get(q.entry.Key)
	reply, err := client.Result(nil), q.err
	if q.reply != nil {
		reply, err = q.reply.Wait(context.Background())
	}
	reply, err = s.Again(ctx, get, q.sent, reply, err)
	switch {
	case err == nil:
		e.GetResult = reply.(client.GetResult)
		if e.Old != nil && e.Old.Load != nil {
			if e.Old.Value, err = e.Old.Load(e.Value); err != nil {
				return Entry{}, err
			}
		}
	case ctx.Err() != nil:
		return Entry{}, context.Cause(ctx)
	case IsAboutKey(err):
		e.Err = s.named(fault.Describe(get, err))
	default:
		return Entry{}, s.named(fault.Describe(get, err))
	}
	return e, nil
}
