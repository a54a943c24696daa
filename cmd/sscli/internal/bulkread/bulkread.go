// Package bulkread reads many keys with their values. The keys come from SCAN, page by page,
// or from anywhere else; up to a window of GETs is under way at a time.
//
//	r := bulkread.Read(ctx, session, bulkread.Scan("thermostat/*"), bulkread.Options{Timeout: o.Timeout})
//	defer r.Close()
//	for {
//		e, err := r.Next()
//		if err == io.EOF {
//			break
//		}
//		…
//	}
//
// Promises:
//
//   - Entries come in the order of the keys. Memory holds a window of values, and not more
//     however many keys there are.
//   - A key that the store refuses is an entry with an error; the other keys are still read.
//   - Reading survives a connection that breaks, for Options.Timeout: a GET and a page of
//     SCAN can be asked for again.
//
// Not promised: that all values are of one moment. The store has no such read.
package bulkread

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
)

// An Entry is a key and what the store answered when it was read.
type Entry struct {
	Key string
	client.GetResult
	Err error // why the key could not be read; nil if it was
}

// Keys are the keys to read. An error comes last, and ends the reading.
type Keys func(r *Reader) iter.Seq2[string, error]

// List returns keys that are known.
func List(keys ...string) Keys {
	return Of(func(yield func(string, error) bool) {
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	})
}

// Of returns the keys of a sequence, which runs in the reader's own goroutine.
func Of(keys iter.Seq2[string, error]) Keys {
	return func(*Reader) iter.Seq2[string, error] { return keys }
}

// Scan returns the keys that match a pattern, in the order of the store, which may list a
// key twice. A lost connection is made again, and the scan goes on where it was.
func Scan(pattern string) Keys {
	return func(r *Reader) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			var token []byte
			for again := true; again; {
				again = false
				asked := time.Now()
				for page, err := range r.session.ScanFrom(r.ctx, pattern, token) {
					if err != nil {
						if again = r.outage.wait(r.ctx, asked, err); !again {
							yield("", err)
						}
						break
					}
					r.outage.over(asked)
					for _, key := range page.Keys {
						if !yield(key, nil) {
							return
						}
					}
					token = page.Next
					asked = time.Now()
				}
			}
		}
	}
}

// Join returns the keys of one source after the other.
func Join(sources ...Keys) Keys {
	return func(r *Reader) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
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
	// Timeout is how long a lost connection may stay away.
	Timeout time.Duration
	// Trouble is called with each error of an outage, before the request is sent again, and
	// with nil when a request was answered after it: once at a time, by the caller of Next or
	// by the reader's own goroutine. May be nil.
	Trouble func(error)
}

// Window is the number of GETs that may be under way.
const Window = 64

// A Reader reads entries. Its methods are for one goroutine.
type Reader struct {
	session *client.Session
	ctx     context.Context
	cancel  context.CancelFunc
	outage  outage
	queue   chan sent
	sending sync.WaitGroup
	head    *sent // taken from queue by Ready
}

// A sent is a key whose GET is under way.
type sent struct {
	key string
	at  time.Time
	f   *client.InFlight // nil if nothing was sent
	err error            // then why
	end error            // of the keys: there are no more
}

// Read begins to read. Call Close when done.
func Read(ctx context.Context, s *client.Session, keys Keys, o Options) *Reader {
	r := &Reader{session: s, outage: outage{limit: o.Timeout, trouble: o.Trouble}, queue: make(chan sent, Window)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.sending.Go(func() {
		defer close(r.queue)
		pipe := s.Pipeline(Window)
		for key, err := range keys(r) {
			item := sent{key: key, at: time.Now(), end: err}
			if err == nil {
				item.f, item.err = pipe.Send(r.ctx, client.Get(key))
			}
			select {
			case r.queue <- item:
			case <-r.ctx.Done():
				return
			}
		}
	})
	return r
}

// Ready reports whether Next would return at once.
func (r *Reader) Ready() bool {
	if r.head == nil {
		select {
		case item, ok := <-r.queue:
			if !ok {
				return true
			}
			r.head = &item
		default:
			return false
		}
	}
	if r.head.f == nil {
		return true
	}
	select {
	case <-r.head.f.Done():
		return true
	default:
		return false
	}
}

// Next returns the next entry, and io.EOF after the last. Any other error ends the reading. If
// it is about one GET, such as a connection that stayed away, the entry has the key.
func (r *Reader) Next() (Entry, error) {
	if r.head == nil {
		item, ok := <-r.queue
		if !ok && r.ctx.Err() != nil {
			return Entry{}, context.Cause(r.ctx)
		}
		if !ok {
			return Entry{}, io.EOF
		}
		r.head = &item
	}
	item := r.head
	r.head = nil
	if item.end != nil {
		return Entry{}, item.end
	}
	e := Entry{Key: item.key}
	reply, err := client.Result(nil), item.err
	if item.f != nil {
		reply, err = item.f.Wait()
	}
	for err != nil && r.outage.wait(r.ctx, item.at, err) {
		item.at = time.Now()
		reply, err = r.session.Do(r.ctx, client.Get(item.key))
	}
	switch {
	case err == nil:
		r.outage.over(item.at)
		e.GetResult = reply.(client.GetResult)
	case r.ctx.Err() != nil:
		return Entry{}, context.Cause(r.ctx)
	case isAboutKey(err):
		e.Err = err
	default:
		return e, err
	}
	return e, nil
}

// Close ends the reading and waits for its goroutine.
func (r *Reader) Close() {
	r.cancel()
	r.sending.Wait()
}

// isAboutKey reports whether the store or the broker refused one request, rather than the
// connection.
func isAboutKey(err error) bool {
	if refused, ok := errors.AsType[*mqtt.ReasonError](err); ok {
		return refused.Packet == "PUBACK"
	}
	return isA[*client.StoreError](err) || isA[*client.StatusError](err) || isA[*client.AnswerError](err) ||
		isA[*client.InvalidError](err) || isA[*client.TooLargeError](err)
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
