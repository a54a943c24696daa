// Package bulkread reads many keys with their values. The keys come from SCAN, page by page,
// or from anywhere else. Up to [Window] GETs are in flight at a time.
//
//	r := bulkread.Read(ctx, session, bulkread.Scan("thermostat/*"), bulkread.Options{App: a, Timeout: o.Timeout})
//	defer r.Close()
//	err := r.Each(a.Flush, func(e bulkread.Entry) error { … })
//
// Promises:
//
//   - Entries come in the order of the keys. Memory holds at most [Window] values, however many
//     keys there are.
//   - A key that the store refuses is an entry with an error; the other keys are still read.
//   - Reading survives a lost connection, for Options.Timeout: a GET and a page of SCAN can be
//     requested again. A message reports the outage.
//
// Not promised: that all values are of one moment. The store has no snapshots.
package bulkread

import (
	"context"
	"io"
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
	Err error // why the key could not be read; nil if it was

	Old *Entry // what the key is compared with; nil in a reading without a comparison
}

// WrittenSince reports whether the value was written at t or later, by the store's clock. A
// version has a resolution of a millisecond.
func (e Entry) WrittenSince(t time.Time) bool {
	return !e.Version.IsZero() && !e.Version.Time().Before(t.Truncate(time.Millisecond))
}

// Keys are the keys to read: entries with a Key, and with Old if the key is compared. An error
// comes last and ends the reading.
type Keys func(r *Reader) iter.Seq2[Entry, error]

// List returns keys that are known.
func List(keys ...string) Keys {
	return Of(func(yield func(Entry, error) bool) {
		for _, key := range keys {
			if !yield(Entry{Key: key}, nil) {
				return
			}
		}
	})
}

// Of returns the keys of a sequence, which runs in the reader's own goroutine.
func Of(keys iter.Seq2[Entry, error]) Keys {
	return func(*Reader) iter.Seq2[Entry, error] { return keys }
}

// Scan returns the keys that match a pattern, in the order of the store, which may list a
// key twice. After a lost connection the scan resumes at the same page.
func Scan(pattern string) Keys {
	return func(r *Reader) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			var token []byte
			for again := true; again; {
				again = false
				sent := time.Now()
				for page, err := range r.session.ScanFrom(r.ctx, pattern, token) {
					if err != nil {
						if again = r.reconnect.wait(r.ctx, sent, err); !again {
							yield(Entry{}, r.named(fault.DescribeScan(client.Scan(pattern, nil), err)))
						}
						break
					}
					r.reconnect.answered(sent)
					for _, key := range page.Keys {
						if !yield(Entry{Key: key}, nil) {
							return
						}
					}
					token = page.Next
					sent = time.Now()
				}
			}
		}
	}
}

// Join returns the keys of one source after the other.
func Join(sources ...Keys) Keys {
	return func(r *Reader) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			for _, keys := range sources {
				for key, err := range keys(r) {
					if !yield(key, err) {
						return
					}
				}
			}
		}
	}
}

// Options are the options of [Read].
type Options struct {
	App     *app.App      // reports outages on standard error
	Timeout time.Duration // how long to wait for a lost connection; 0 for client.DefaultTimeout
	Context string        // the name of the store's context in messages; empty: not named
}

// Window is the number of GETs that may be in flight.
const Window = 64

// A Reader reads entries. Only one goroutine may call its methods.
type Reader struct {
	session   *client.Session
	options   Options
	ctx       context.Context
	cancel    context.CancelFunc
	reconnect reconnect
	queue     chan request
	sending   sync.WaitGroup
	head      *request // taken from queue by Ready
}

// A request is a key whose GET is in flight.
type request struct {
	entry Entry
	sent  time.Time
	reply *client.InFlight // nil if nothing was sent
	err   error            // why nothing was sent
	end   error            // the error that ended the keys, or io.EOF; nil for a key
}

// Read begins to read. Call Close when done.
func Read(ctx context.Context, s *client.Session, keys Keys, o Options) *Reader {
	if o.Timeout == 0 {
		o.Timeout = client.DefaultTimeout
	}
	r := &Reader{session: s, options: o, queue: make(chan request, Window)}
	r.reconnect.options = o
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.sending.Go(func() {
		defer close(r.queue)
		pipe := s.Pipeline(Window)
		for entry, err := range keys(r) {
			q := request{entry: entry, sent: time.Now(), end: err}
			if err == nil {
				q.reply, q.err = pipe.Send(r.ctx, client.Get(entry.Key))
			}
			select {
			case r.queue <- q:
			case <-r.ctx.Done():
				return
			}
		}
	})
	return r
}

// Each calls do with each entry. Before it waits for an entry, and at the end, it calls flush,
// so that the user sees the entries that were read. It returns the first error: of do, of flush
// or of the reading.
func (r *Reader) Each(flush func() error, do func(Entry) error) (err error) {
	defer func() {
		if flushErr := flush(); err == nil {
			err = flushErr
		}
	}()
	for {
		if !r.Ready() {
			if err := flush(); err != nil {
				return err
			}
		}
		e, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(e); err != nil {
			return err
		}
	}
}

// Ready reports whether Next would return at once.
func (r *Reader) Ready() bool {
	if r.head == nil {
		select {
		case q, ok := <-r.queue:
			if !ok {
				return true
			}
			r.head = &q
		default:
			return false
		}
	}
	if r.head.reply == nil {
		return true
	}
	select {
	case <-r.head.reply.Done():
		return true
	default:
		return false
	}
}

// Next returns the next entry, and io.EOF after the last. Any other error ends the reading.
func (r *Reader) Next() (Entry, error) {
	if r.head == nil {
		q, ok := <-r.queue
		if !ok && r.ctx.Err() != nil {
			return Entry{}, context.Cause(r.ctx)
		}
		if !ok {
			return Entry{}, io.EOF
		}
		r.head = &q
	}
	q := r.head
	r.head = nil
	if q.end != nil {
		return Entry{}, q.end
	}
	e, get := q.entry, client.Get(q.entry.Key)
	reply, err := client.Result(nil), q.err
	if q.reply != nil {
		reply, err = q.reply.Wait()
	}
	for err != nil && r.reconnect.wait(r.ctx, q.sent, err) {
		q.sent = time.Now()
		reply, err = r.session.Do(r.ctx, get)
	}
	switch {
	case err == nil:
		r.reconnect.answered(q.sent)
		e.GetResult = reply.(client.GetResult)
	case r.ctx.Err() != nil:
		return Entry{}, context.Cause(r.ctx)
	case isAboutKey(err):
		e.Err = r.named(fault.Describe(get, err))
	default:
		return Entry{}, r.named(fault.Describe(get, err))
	}
	return e, nil
}

// Close ends the reading and waits for its goroutine.
func (r *Reader) Close() {
	r.cancel()
	r.sending.Wait()
}
