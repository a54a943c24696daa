package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Pipeline keeps several requests in flight, up to a limit. For each key it keeps at most one
// in flight, because the store promises no order between outstanding requests. Several
// goroutines may use it. A goroutine's requests for one key are sent in the order in which
// it called Send and Queue.
type Pipeline struct {
	s      *Session
	limit  int    // maximum number of requests in flight
	onWait func() // set by OnWait; nil = none

	losses atomic.Int64

	mu      sync.Mutex
	busy    map[string]*InFlight              // by key
	freed   chan struct{}                     // closed when a request ends; nil = nobody waits
	watched map[<-chan struct{}](func() bool) // by a context's Done channel: stops its AfterFunc
}

// An InFlight is a request that a [Pipeline] has sent.
type InFlight struct{ request }

// Pipeline returns a pipeline that keeps up to inFlight requests in flight. A limit below 1
// counts as 1.
func (s *Session) Pipeline(inFlight int) *Pipeline {
	return &Pipeline{
		s: s, limit: max(inFlight, 1),
		busy: make(map[string]*InFlight), watched: make(map[<-chan struct{}](func() bool)),
	}
}

// Send sends a request as soon as there is room and no other request for the same key is in
// flight. ctx bounds the wait and the request, and the request also ends after Options.Timeout.
// An error means that nothing was sent; it is one of the errors of [Session.Do].
func (p *Pipeline) Send(ctx context.Context, c Command) (*InFlight, error) {
	f, err := p.Queue(ctx, c)
	p.Flush()
	return f, err
}

// Queue is like Send, but may leave the request unsent until Flush or a later call, so that
// several requests are sent together. If it has to wait, it flushes first.
func (p *Pipeline) Queue(ctx context.Context, c Command) (*InFlight, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	f := &InFlight{request{s: p.s, command: c, ctx: ctx, pipe: p, done: make(chan struct{})}}
	if err := p.reserve(f); err != nil {
		return nil, err
	}
	if err := p.send(&f.request); err != nil {
		p.free(c.Key())
		return nil, err
	}
	if ctx.Err() != nil {
		p.endWith(ctx) // again, because the first call may have come before f was outstanding
	}
	return f, nil
}

// send sends a request, on a new connection if there is none.
func (p *Pipeline) send(r *request) error {
	s := p.s
	conn := s.alive()
	if conn == nil {
		p.beforeWait()
		limited, cancel := context.WithTimeout(r.ctx, s.o.Timeout)
		defer cancel()
		var err error
		if conn, err = s.connection(limited); err != nil {
			return err
		}
	}
	return r.startAlone(r.ctx, conn)
}

// ended frees the place of a request that has ended.
func (p *Pipeline) ended(r *request) {
	if isA[*LostAnswerError](r.err) {
		p.losses.Add(1)
	}
	p.free(r.command.Key())
}

// OnWait sets a function to call before Send or Queue waits: for a key, for another request to
// end, for room at the broker, or for a new connection. Call OnWait before the first request.
func (p *Pipeline) OnWait(f func()) { p.onWait = f }

// beforeWait is called before Send or Queue waits.
func (p *Pipeline) beforeWait() {
	p.Flush() // an unsent request would never get its answer
	if p.onWait != nil {
		p.onWait()
	}
}

// Flush sends the requests that Queue has not sent yet. It does not wait.
func (p *Pipeline) Flush() {
	if conn := p.s.alive(); conn != nil {
		conn.Flush()
	}
}

// Losses returns the number of writes so far that got no usable answer. A write is counted
// before another request can take its place.
func (p *Pipeline) Losses() int { return int(p.losses.Load()) }

// Busy returns the request for a key that is in flight, or nil.
func (p *Pipeline) Busy(key string) *InFlight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy[key]
}

// reserve waits until the key of f is free and there is room for another request.
func (p *Pipeline) reserve(f *InFlight) error {
	ctx, key := f.ctx, f.command.Key()
	for {
		p.mu.Lock()
		if p.busy[key] == nil && len(p.busy) < p.limit {
			p.busy[key] = f
			if done := ctx.Done(); done != nil && p.watched[done] == nil {
				p.watched[done] = context.AfterFunc(ctx, func() { p.endWith(ctx) })
			}
			p.mu.Unlock()
			return nil
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
			return context.Cause(ctx)
		}
	}
}

// endWith ends all requests whose context is ctx, which has ended.
func (p *Pipeline) endWith(ctx context.Context) {
	p.mu.Lock()
	delete(p.watched, ctx.Done())
	p.mu.Unlock()
	p.s.finishAll(func(r *request) bool { return r.ctx != nil && r.ctx.Done() == ctx.Done() }, context.Cause(ctx))
}

// free ends the reservation of a key and wakes the goroutines that wait for the key or for
// room.
func (p *Pipeline) free(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, key)
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

// Over reports whether the result is known, so that Wait returns at once.
func (f *InFlight) Over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// Done returns a channel that is closed when the result is known.
func (f *InFlight) Done() <-chan struct{} { return f.done }

// Wait waits for the result. It returns the errors of [Session.Do].
func (f *InFlight) Wait() (Result, error) {
	if !f.Over() {
		f.pipe.Flush()
		<-f.done
	}
	return f.result, f.err
}
