// Package exchange sends the requests of commands: how one ends, and how many are asked at once.
//
//	store := exchange.NewStore(a, session)
//	w := exchange.NewWindow(store, exchange.Options{Flush: a.Flush}, func(key string, o exchange.Outcome) error { … })
//	err := w.Add(ctx, key, new(client.Get(key))) // for each request
//	err = w.Finish(ctx, err)
//
// [Store.Do] carries out a single request, [Store.Each] reads many keys, and [Scan] lists those that match a pattern.
//
// Promises:
//
//   - Outcomes come in the order of the requests. At most one request for a key is in flight.
//   - A read whose reply is lost is repeated for up to [app.Retry].For. A message reports the outage.
//   - After a write without a reply, nothing more is sent until all requests in flight have ended. The keys of the
//     writes without a reply are then read back together: each write was applied, was not, or its outcome is unknown.
//   - When ctx ends, nothing more is sent. Requests in flight have another second for their replies, unless
//     [Options.Limited] ends them.
//   - A window holds the values of at most [Options.Limit] requests at a time, fewer if the values are large.
//
// Values that are read one after the other are not a snapshot, which the store does not offer.
package exchange

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/internal/wire"
)

// MaxInFlight is the number of requests in flight in a window without Options.Limit. Such a window begins with
// firstInFlight, and allows one more after each reply.
const (
	MaxInFlight   = 256
	firstInFlight = 8
)

// maxBytes is the size of the values of all requests in flight and of their replies, unless one is larger.
const maxBytes = 16 << 20

// lastReplies is how long requests in flight wait for their replies after an interrupt.
const lastReplies = time.Second

// Options are the options of a Window.
type Options struct {
	Limit int          // how many requests may be in flight; 0 = up to MaxInFlight
	Flush func() error // called before the window waits, so that the user sees the results so far; nil = none

	// Ends makes the window return the error of a request that could not be sent, in place of passing it on, unless it
	// is about the key: the next request could not be sent either.
	Ends bool

	// Limited ends the requests, but not reading back, at once when it ends; nil = lastReplies after the context of Add.
	Limited context.Context
}

// A Window is a queue of requests. Each belongs to an item of the caller, which gets the outcome with it. One
// goroutine uses a Window.
type Window[T any] struct {
	store *Store
	o     Options
	done  func(T, Outcome) error
	pipe  *client.Pipeline

	places []place[T] // those from head on wait for their outcome to be passed on
	head   int
	limit  int   // requests that may be in flight now
	grows  bool  // limit follows the sizes of the replies
	bytes  int   // of the values of the requests in flight
	losses int   // writes without a reply that were read back
	unsent int   // requests that could not be sent, and whose outcome was not passed on
	broken error // an error of Options.Flush

	late context.Context // ends lastReplies after the context of the requests; nil before the first
	stop context.CancelCauseFunc
}

// A place is one request, or an outcome that keeps its place in the order.
type place[T any] struct {
	item    T
	command *client.Command // nil if the outcome was known
	reads   bool
	sent    time.Time        // of a read
	flight  *client.InFlight // nil if nothing is in flight
	unsent  bool             // the request could not be sent
	outcome Outcome
}

// NewWindow returns a window that calls done with each outcome, in the order of the requests. An error of done is
// returned by the call of Add, Place, Next or Finish that passed the outcome on. Errors of outcomes name their request.
func NewWindow[T any](store *Store, o Options, done func(T, Outcome) error) *Window[T] {
	w := &Window[T]{store: store, o: o, done: done, limit: o.Limit, grows: o.Limit == 0}
	if w.grows {
		w.o.Limit, w.limit = MaxInFlight, firstInFlight
	}
	w.pipe = store.Session.Pipeline(2 * w.o.Limit) // with room for Queue
	w.pipe.OnWait(func() { w.broken = cmp.Or(w.broken, w.flush()) })
	return w
}

func (w *Window[T]) flush() error {
	if w.o.Flush == nil {
		return nil
	}
	return w.o.Flush()
}

// Len returns the number of places whose outcome was not passed on.
func (w *Window[T]) Len() int { return len(w.places) - w.head }

// Room reports whether another request can be sent. After a write without a reply, or a request that could not be
// sent, there is no room until its outcome was passed on.
func (w *Window[T]) Room() bool { return w.room(0) }

func (w *Window[T]) room(bytes int) bool {
	return w.Len() == 0 || w.Len() < w.limit && w.bytes+bytes <= maxBytes && w.pipe.Losses() == w.losses && w.unsent == 0
}

// Busy returns a channel that is closed when the request in flight for a key is over; nil if there is none.
func (w *Window[T]) Busy(key string) <-chan struct{} {
	if f := w.pipe.Busy(key); f != nil {
		return f.Done()
	}
	return nil
}

// Add sends a request as soon as there is room and no other request for its key is in flight. Meanwhile, and
// afterwards, it passes on the outcomes that are known. The command must not change until its own was passed on.
func (w *Window[T]) Add(ctx context.Context, item T, c *client.Command) error {
	for w.Len() > 0 && (!w.room(len(c.Value())) || w.pipe.Busy(c.Key()) != nil) {
		if err := w.finishFirst(ctx); err != nil {
			return err
		}
	}
	sending := w.o.Limited
	if sending == nil {
		sending = w.grace(ctx)
	}
	p := w.push()
	p.item, p.command = item, c
	if p.reads = !wire.Changes(c.Verb()); p.reads {
		p.sent = time.Now()
	}
	if ctx.Err() != nil || sending.Err() != nil {
		p.outcome.Err = cmp.Or(context.Cause(ctx), context.Cause(sending))
	} else {
		p.flight, p.outcome.Err = w.pipe.Queue(sending, *c)
	}
	if p.unsent = p.flight == nil; p.unsent {
		w.unsent++
	}
	w.bytes += len(c.Value())
	return cmp.Or(w.broken, w.FinishReady(ctx))
}

// Place keeps a place in the order for an outcome that is already known, and sends nothing.
func (w *Window[T]) Place(ctx context.Context, item T, o Outcome) error {
	p := w.push()
	p.item, p.outcome = item, o
	return cmp.Or(w.broken, w.FinishReady(ctx))
}

// Queue sends a request that has no place in the order, such as a GET that prepares a write.
func (w *Window[T]) Queue(ctx context.Context, c client.Command) (*client.InFlight, error) {
	return w.pipe.Queue(ctx, c)
}

// push returns a new place at the end, valid until the next call.
func (w *Window[T]) push() *place[T] {
	if len(w.places) == cap(w.places) && w.head > len(w.places)/2 {
		w.places = slices.Delete(w.places, 0, w.head)
		w.head = 0
	}
	w.places = append(w.places, place[T]{})
	return &w.places[len(w.places)-1]
}

// FinishReady passes on the outcomes that are known, up to the first that is not.
func (w *Window[T]) FinishReady(ctx context.Context) error {
	for w.Len() > 0 && (w.places[w.head].flight == nil || w.places[w.head].flight.Over()) {
		if err := w.finishFirst(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Ready flushes, and returns a channel that is closed when the first outcome is known; nil if there is no place.
func (w *Window[T]) Ready() <-chan struct{} {
	if w.Len() == 0 {
		return nil
	}
	w.pipe.Flush()
	return w.places[w.head].flight.Done()
}

// Flush sends the requests that wait to be sent together with others.
func (w *Window[T]) Flush() { w.pipe.Flush() }

// Next returns the next element of a source once there is room for another request. Until then it passes on the
// outcomes that become known. more is false at the end of the source.
func Next[S, T any](ctx context.Context, w *Window[T], source <-chan S) (next S, more bool, err error) {
	for {
		if err = w.FinishReady(ctx); err != nil {
			return next, false, err
		}
		from := source
		if !w.room(0) {
			from = nil
		}
		if len(from) == 0 {
			runtime.Gosched() // on one core, the source may be ready only then
		}
		select {
		case next, more = <-from:
			return next, more, nil
		default:
		}
		if err = w.flush(); err != nil {
			return next, false, err
		}
		select {
		case next, more = <-from:
			return next, more, nil
		case <-w.Ready():
		case <-ctx.Done():
			return next, false, context.Cause(ctx)
		}
	}
}

// Finish waits for all requests and passes their outcomes on, even after an error, so that each write that was sent
// is reported. It returns err or, if err is nil, the first error of its own.
func (w *Window[T]) Finish(ctx context.Context, err error) error {
	for w.Len() > 0 {
		err = cmp.Or(err, w.finishFirst(ctx))
	}
	if w.stop != nil {
		w.stop(nil)
		w.late, w.stop = nil, nil
	}
	return cmp.Or(err, w.broken)
}

// finishFirst waits for the first outcome and passes it on.
func (w *Window[T]) finishFirst(ctx context.Context) error {
	p := &w.places[w.head]
	unsent := p.unsent
	if unsent {
		w.unsent--
	}
	if p.flight != nil && !p.flight.Over() {
		w.broken = cmp.Or(w.broken, w.flush())
	}
	if p.await(); p.outcome.Err != nil && p.outcome.Lost() != nil {
		w.recover(ctx)
	}
	if c := p.command; c != nil {
		if p.reads {
			w.store.again(ctx, *c, p.sent, &p.outcome, nil)
		}
		if p.outcome.Err != nil {
			p.outcome.Err = w.store.Retry.Named(fault.Describe(*c, p.outcome.Err))
		}
		w.bytes -= len(c.Value())
	}
	if w.grows {
		w.limit = min(w.limit+1, max(1, min(w.o.Limit, maxBytes/(size(p.outcome.Result)+1))))
	}
	item, outcome := p.item, p.outcome
	*p = place[T]{}
	if w.head++; w.head == len(w.places) {
		w.places, w.head = w.places[:0], 0
	}
	if w.o.Ends && unsent && outcome.Err != nil && !isAboutKey(outcome.Err) {
		return cmp.Or(context.Cause(ctx), outcome.Err)
	}
	return w.done(item, outcome)
}

// await waits until the request is over.
func (p *place[T]) await() {
	if p.flight != nil {
		p.outcome.Result, p.outcome.Err = p.flight.Wait(context.Background())
		p.flight = nil
	}
}

// recover waits for all requests in flight, and reads back the keys of the writes without a reply. If one reply is
// lost, others usually are too, and reading all keys together is faster.
func (w *Window[T]) recover(ctx context.Context) {
	w.broken = cmp.Or(w.broken, w.flush())
	outcomes := make([]*Outcome, 0, w.Len())
	for i := w.head; i < len(w.places); i++ {
		w.places[i].await()
		outcomes = append(outcomes, &w.places[i].outcome)
	}
	w.losses = w.pipe.Losses()
	w.store.recover(ctx, outcomes...)
}

// grace returns the context of requests without Options.Limited, which ends lastReplies after ctx.
func (w *Window[T]) grace(ctx context.Context) context.Context {
	if w.late == nil {
		var cancel context.CancelCauseFunc
		w.late, cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		late := w.late
		context.AfterFunc(ctx, func() {
			if wait.For(late, lastReplies) {
				cancel(context.Cause(ctx))
			}
		})
		w.stop = cancel
	}
	return w.late
}

func size(r client.Result) int {
	if got, ok := r.(client.GetResult); ok {
		return len(got.Value)
	}
	return 0
}
