package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Pipeline keeps several requests in flight: at most one for each key, because the store
// promises no order between outstanding requests, and at most a fixed number of them.
// Several goroutines may use it. Requests for one key that the same goroutine sends go out
// in the order of the calls of Send and Queue.
type Pipeline struct {
	s          *Session
	limit      int    // maximum number of requests in flight
	onWait     func() // nil = none
	beforeWait func() // flushes, and calls onWait
	onEnd      func(*request)

	losses atomic.Int64

	mu      sync.Mutex
	busy    map[string]*InFlight              // by key
	spare   []*request                        // for reuse; only onAck is set
	freed   chan struct{}                     // closed when a request ends; nil = nobody waits
	watched map[<-chan struct{}](func() bool) // stops a context's AfterFunc, by its Done channel
}

// An InFlight is a request that a [Pipeline] has sent.
type InFlight struct {
	pipe    *Pipeline
	result  Result
	err     error
	over    atomic.Bool   // result and err are set
	awaited chan struct{} // closed when over is set; made by Done; guarded by pipe.mu
}

// Pipeline returns a pipeline for at most inFlight requests at a time, at least one.
func (s *Session) Pipeline(inFlight int) *Pipeline {
	p := &Pipeline{s: s, limit: max(inFlight, 1), busy: make(map[string]*InFlight), watched: make(map[<-chan struct{}](func() bool))}
	p.beforeWait = func() {
		p.Flush() // or the awaited answer may never come
		if p.onWait != nil {
			p.onWait()
		}
	}
	p.onEnd = p.ended
	return p
}

// Send sends a request as soon as there is room and no other request for the same key is in
// flight. ctx bounds the wait and the request; from its start the request also has
// Options.Timeout. An error means that nothing was sent; it is an error of [Session.Do].
func (p *Pipeline) Send(ctx context.Context, c Command) (*InFlight, error) {
	f, err := p.Queue(ctx, c)
	p.Flush()
	return f, err
}

// Queue is Send for one of several requests that are known already: it may leave the
// request to be sent by Flush, or by a later call, together with others. When it has to
// wait, it flushes first.
func (p *Pipeline) Queue(ctx context.Context, c Command) (*InFlight, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	f := &InFlight{pipe: p}
	r, err := p.reserve(ctx, c.Key(), f)
	if err != nil {
		return nil, err
	}
	r.s, r.command, r.ctx, r.inFlight, r.onEnd, r.onWait = p.s, c, ctx, f, p.onEnd, p.beforeWait
	if err := p.send(ctx, r); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free(c.Key(), f)
		return nil, err
	}
	if ctx.Err() != nil {
		p.endWith(ctx) // again, because r may not have been sent then
	}
	return f, nil
}

// send sends a request, on a new connection if there is none.
func (p *Pipeline) send(ctx context.Context, r *request) error {
	s := p.s
	conn := s.alive()
	if conn == nil {
		p.beforeWait()
		limited, cancel := context.WithTimeout(ctx, s.o.Timeout)
		defer cancel()
		var err error
		if conn, err = s.connection(limited); err != nil {
			return err
		}
	}
	return r.startAlone(ctx, conn)
}

// ended is called when the outcome of a request is known.
func (p *Pipeline) ended(r *request) {
	if isA[*LostAnswerError](r.err) {
		p.losses.Add(1)
	}
	f := r.inFlight
	f.result, f.err = r.result, r.err
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(r.command.Key(), f)
	if r.forgotten {
		*r = request{onAck: r.onAck}
		p.spare = append(p.spare, r)
	}
}

// OnWait sets a function to call before Send or Queue waits: for a key, for another request to end, for
// room at the broker, or for a new connection. Call OnWait before the first request.
func (p *Pipeline) OnWait(f func()) { p.onWait = f }

// Flush sends the requests that Queue has not sent yet. It does not wait.
func (p *Pipeline) Flush() {
	if conn := p.s.alive(); conn != nil {
		conn.Flush()
	}
}

// Losses returns how many writes got no usable answer so far. A write is counted before its
// place is free for another request.
func (p *Pipeline) Losses() int { return int(p.losses.Load()) }

// Busy returns the request for a key that is in flight, or nil.
func (p *Pipeline) Busy(key string) *InFlight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy[key]
}

// reserve waits until the key is free and there is room for another request, and returns the memory
// for it.
func (p *Pipeline) reserve(ctx context.Context, key string, f *InFlight) (*request, error) {
	for {
		p.mu.Lock()
		if p.busy[key] == nil && len(p.busy) < p.limit {
			p.busy[key] = f
			if done := ctx.Done(); done != nil && p.watched[done] == nil {
				p.watched[done] = context.AfterFunc(ctx, func() { p.endWith(ctx) })
			}
			r := p.newRequest()
			p.mu.Unlock()
			return r, nil
		}
		if p.freed == nil {
			p.freed = make(chan struct{})
		}
		freed := p.freed
		p.mu.Unlock()
		p.beforeWait()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// newRequest returns an empty request. It requires p.mu.
func (p *Pipeline) newRequest() *request {
	last := len(p.spare) - 1
	if last < 0 {
		return new(request)
	}
	r := p.spare[last]
	p.spare = p.spare[:last]
	return r
}

// endWith ends the requests of a context that has ended.
func (p *Pipeline) endWith(ctx context.Context) {
	p.mu.Lock()
	delete(p.watched, ctx.Done())
	p.mu.Unlock()
	p.s.finishAll(func(r *request) bool { return r.ctx != nil && r.ctx.Done() == ctx.Done() }, context.Cause(ctx))
}

// free ends the reservation of a key and wakes the goroutines that wait for it. It requires p.mu.
func (p *Pipeline) free(key string, f *InFlight) {
	delete(p.busy, key)
	f.over.Store(true)
	if f.awaited != nil {
		close(f.awaited)
	}
	if len(p.busy) == 0 {
		for _, stop := range p.watched {
			stop()
		}
		clear(p.watched)
	}
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

// Over reports whether Wait would not block.
func (f *InFlight) Over() bool { return f.over.Load() }

// Done returns a channel that is closed when Wait no longer blocks.
func (f *InFlight) Done() <-chan struct{} {
	f.pipe.mu.Lock()
	defer f.pipe.mu.Unlock()
	if f.awaited == nil {
		f.awaited = make(chan struct{})
		if f.Over() {
			close(f.awaited)
		}
	}
	return f.awaited
}

// Wait waits for the result. It returns the errors of [Session.Do].
func (f *InFlight) Wait() (Result, error) {
	if !f.Over() {
		f.pipe.Flush()
		<-f.Done()
	}
	return f.result, f.err
}
