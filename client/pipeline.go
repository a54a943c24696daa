package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Pipeline keeps several requests in flight: at most one for each key, because the store
// promises no order between outstanding requests, and at most as many as its window.
// Several goroutines may use it. Requests for one key that the same goroutine sends go out
// in the order of the calls of Send and Queue.
type Pipeline struct {
	s      *Session
	window int
	onWait func() // nil = none

	losses atomic.Int64

	mu     sync.Mutex
	busy   map[string]*InFlight // by key
	freed  chan struct{}        // closed when a request ends; nil = nobody waits for that
	caller *caller              // of the last Send; nil if none of its requests is in flight
}

// An InFlight is a request that a [Pipeline] has sent.
type InFlight struct {
	pending
	pipe *Pipeline
	over atomic.Bool   // set with pipe.mu locked
	told chan struct{} // closed when over is set; nil until somebody asks for it; guarded by pipe.mu
}

// A caller is a context whose end ends the requests that were sent with it.
type caller struct {
	ctx      context.Context
	requests int // in flight; guarded by Pipeline.mu
	stop     func() bool
}

// Pipeline returns a pipeline with a window of at least one request.
func (s *Session) Pipeline(window int) *Pipeline {
	return &Pipeline{s: s, window: max(window, 1), busy: make(map[string]*InFlight)}
}

// Send sends a request as soon as the window has room and no other request for the same
// key is in flight. ctx bounds the wait and the request; from its start the request also
// has Options.Timeout. An error means that nothing was sent; it is an error of
// [Session.Do].
func (p *Pipeline) Send(ctx context.Context, c Command) (*InFlight, error) {
	f, err := p.Queue(ctx, c)
	p.Flush()
	return f, err
}

// Queue is Send for one of several requests that are known already: it may leave the
// request to be sent by Flush, or by a later call, together with others. When it has to
// wait, it flushes first.
func (p *Pipeline) Queue(ctx context.Context, c Command) (*InFlight, error) {
	return p.QueueAgain(ctx, c, nil)
}

// QueueAgain is Queue with memory that the caller no longer needs: used is a request of the
// same pipeline whose Wait has returned, or nil. The result may be used, for the new request.
func (p *Pipeline) QueueAgain(ctx context.Context, c Command, used *InFlight) (*InFlight, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	f := used
	if f != nil && f.Over() && f.spare.Load() {
		*f = InFlight{pipe: p, pending: pending{ended: f.ended, waits: f.waits, onAck: f.onAck}}
	} else {
		f = &InFlight{pipe: p}
		f.ended, f.waits = f.end, p.waits
	}
	if err := p.reserve(ctx, c.Key(), f); err != nil {
		return nil, err
	}
	f.begins(p.s, &c)
	if err := f.send(ctx); err != nil {
		p.free(f, c.Key())
		return nil, err
	}
	if ctx.Err() != nil {
		p.s.finish(f.id, context.Cause(ctx)) // the caller may have looked for it before
	}
	return f, nil
}

// send sends the request, on a new connection if there is none.
func (f *InFlight) send(ctx context.Context) error {
	conn := f.s.alive()
	if conn == nil {
		f.pipe.waits()
		f.deadline = time.Now().Add(f.s.o.Timeout)
		limited, cancel := context.WithDeadline(ctx, f.deadline)
		defer cancel()
		var err error
		if conn, err = f.s.connection(limited); err != nil {
			return err
		}
	}
	return f.start(ctx, conn)
}

// OnWait has f called before Send or Queue waits: for a key, for the window, for room at the
// broker, or for a new connection. Call OnWait before the first request.
func (p *Pipeline) OnWait(f func()) { p.onWait = f }

// waits comes before a wait.
func (p *Pipeline) waits() {
	p.Flush() // or what is awaited may never come
	if p.onWait != nil {
		p.onWait()
	}
}

// Flush sends what Queue has left. It does not wait.
func (p *Pipeline) Flush() {
	if conn := p.s.alive(); conn != nil {
		conn.Flush()
	}
}

// Losses returns how many writes got no usable answer so far. A write counts before another
// request has its place.
func (p *Pipeline) Losses() int { return int(p.losses.Load()) }

// Busy returns the request for a key that is in flight, or nil.
func (p *Pipeline) Busy(key string) *InFlight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy[key]
}

// reserve waits until the key is free and the window has room.
func (p *Pipeline) reserve(ctx context.Context, key string, f *InFlight) error {
	for {
		p.mu.Lock()
		if p.busy[key] == nil && len(p.busy) < p.window {
			p.busy[key] = f
			f.caller = p.calledBy(ctx)
			p.mu.Unlock()
			return nil
		}
		if p.freed == nil {
			p.freed = make(chan struct{})
		}
		freed := p.freed
		p.mu.Unlock()
		p.waits()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// calledBy counts one more request of a context. The caller holds p.mu.
func (p *Pipeline) calledBy(ctx context.Context) *caller {
	if p.caller == nil || p.caller.ctx.Done() != ctx.Done() {
		c := &caller{ctx: ctx}
		c.stop = context.AfterFunc(ctx, func() { p.s.finishAll(func(q *pending) bool { return q.caller == c }, context.Cause(ctx)) })
		p.caller = c
	}
	p.caller.requests++
	return p.caller
}

// free gives back what reserve has taken.
func (p *Pipeline) free(f *InFlight, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, key)
	if f.caller.requests--; f.caller.requests == 0 {
		f.caller.stop()
		if p.caller == f.caller {
			p.caller = nil
		}
	}
	told := f.told
	f.over.Store(true) // who sees this may use f again
	if told != nil {
		close(told)
	}
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

// end is called when the outcome is known.
func (f *InFlight) end() {
	p := f.pipe
	if _, lost := errors.AsType[*LostAnswerError](f.err); lost {
		p.losses.Add(1)
	}
	p.free(f, f.command.Key())
}

// Over reports whether Wait would not block.
func (f *InFlight) Over() bool { return f.over.Load() }

// Done returns a channel that is closed when Wait no longer blocks.
func (f *InFlight) Done() <-chan struct{} {
	f.pipe.mu.Lock()
	defer f.pipe.mu.Unlock()
	if f.told == nil {
		f.told = make(chan struct{})
		if f.over.Load() {
			close(f.told)
		}
	}
	return f.told
}

// Wait waits for the result. It returns the errors of [Session.Do].
func (f *InFlight) Wait() (Result, error) {
	if !f.Over() {
		f.pipe.Flush()
		<-f.Done()
	}
	return f.result, f.err
}
