package client

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
)

// A Pipeline keeps several requests in flight, up to a limit. For each key it keeps at most one
// in flight, because the store promises no order between outstanding requests. Several
// goroutines may use it. A goroutine's requests for one key are sent in the order in which
// it called Send and Queue.
type Pipeline struct {
	s          *Session
	limit      int    // maximum number of requests in flight
	onWait     func() // set by OnWait; nil = none
	beforeWait func() // flushes, and calls onWait
	onEnd      func(*request)

	losses   atomic.Int64
	flushing atomic.Bool // a flush is due

	mu      sync.Mutex
	busy    map[string]*InFlight              // by key
	spare   []*request                        // finished requests for reuse; only onAck is set
	freed   chan struct{}                     // closed when a request ends; nil = nobody waits
	watched map[<-chan struct{}](func() bool) // by a context's Done channel: the stop function of its AfterFunc
}

// An InFlight is a request that a [Pipeline] has sent.
type InFlight struct {
	pipe    *Pipeline
	command *Command         // set by Results, else nil: a Command is large
	ended   chan<- *InFlight // receives the InFlight when it is over; nil = nobody waits
	result  Result
	err     error
	over    atomic.Bool   // result and err are set
	awaited chan struct{} // closed when over is set; nil until Done makes it; guarded by pipe.mu
}

// Pipeline returns a pipeline that keeps up to inFlight requests in flight. A limit below 1
// counts as 1.
func (s *Session) Pipeline(inFlight int) *Pipeline {
	p := &Pipeline{s: s, limit: max(inFlight, 1), busy: make(map[string]*InFlight), watched: make(map[<-chan struct{}](func() bool))}
	p.beforeWait = func() {
		p.Flush() // an unsent request would never get its reply
		if p.onWait != nil {
			p.onWait()
		}
	}
	p.onEnd = p.ended
	return p
}

// Send sends a request as soon as there is room and no other request for the same key is in
// flight. ctx bounds the wait and the request, and the request also ends after Options.Timeout.
// An error means that nothing was sent; it is one of the errors of [Session.Do].
func (p *Pipeline) Send(ctx context.Context, c Command) (*InFlight, error) {
	f, err := p.Queue(ctx, c)
	p.Flush()
	return f, err
}

// Queue is like Send, but sends the request with the requests that are queued in the next milliseconds, or
// with Flush. If it has to wait, it flushes first.
func (p *Pipeline) Queue(ctx context.Context, c Command) (*InFlight, error) {
	return p.queue(ctx, c, &InFlight{pipe: p})
}

// flushAfter is how long Queue leaves a request unsent.
const flushAfter = 5 * time.Millisecond

func (p *Pipeline) queue(ctx context.Context, c Command, f *InFlight) (*InFlight, error) {
	if p.s == nil {
		return nil, invalid("the zero Pipeline has no session; a Pipeline comes from Session.Pipeline")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	r, err := p.reserve(ctx, c.Key(), f)
	if err != nil {
		return nil, err
	}
	r.s, r.command, r.ctx, r.inFlight, r.onEnd, r.onWait = p.s, c, ctx, f, p.onEnd, p.beforeWait
	r.observed = p.s.observe(ctx, c)
	if err := p.send(ctx, r); err != nil {
		if r.observed != nil {
			r.observed(nil, err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		f.ended = nil
		p.free(c.Key(), f)
		return nil, err
	}
	if ctx.Err() != nil {
		p.endWith(ctx) // reserve's AfterFunc may have called endWith before r was outstanding
	}
	if p.flushing.CompareAndSwap(false, true) {
		time.AfterFunc(flushAfter, func() {
			p.flushing.Store(false)
			p.Flush()
		})
	}
	return f, nil
}

// send sends a request, on a new connection if there is none.
func (p *Pipeline) send(ctx context.Context, r *request) error {
	s := p.s
	conn := s.alive()
	if conn == nil {
		p.beforeWait()
		var err error
		if conn, err = retried(ctx, s, Command{}, func() (*mqtt.Conn, error) {
			limited, cancel := limitTo(ctx, s.o.Timeout)
			defer cancel()
			return s.connection(limited)
		}); err != nil {
			return err
		}
	}
	return r.startAlone(ctx, conn)
}

// ended handles the outcome of a request: a read whose reply was lost is sent again within Options.RetryFor.
func (p *Pipeline) ended(r *request) {
	s := p.s
	if r.observed != nil {
		r.observed(r.result, r.err)
	}
	if r.err == nil || s.o.RetryFor == 0 || !s.mayRepeat(r.command, r.err) || r.ctx.Err() != nil || !s.hold() {
		p.over(r)
		return
	}
	go func() {
		defer s.wg.Done()
		first := r.err
		r.result, r.err = retried(r.ctx, s, r.command, func() (Result, error) {
			if err := first; err != nil {
				first = nil
				return nil, err
			}
			limited, cancel := limitTo(r.ctx, s.o.Timeout)
			defer cancel()
			return s.do(limited, r.command)
		})
		p.over(r)
	}()
}

// over records the outcome of a request and frees its place.
func (p *Pipeline) over(r *request) {
	if isA[*LostReplyError](r.err) {
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

// OnWait sets a function to call before Send or Queue waits: for a key, for another request to
// end, for room at the broker, or for a new connection. Call OnWait before the first request.
func (p *Pipeline) OnWait(f func()) { p.onWait = f }

// Results queues commands and yields each of them when its result comes; InFlight.Wait then returns at once. A command
// that could not be sent is yielded with the error of Queue. The sequence commands runs in a goroutine of its own, and may
// wait for results that the loop gets. If the loop ends early, no further command is sent, and Drain waits for the requests
// in flight.
//
//	for f := range p.Results(ctx, commands) {
//		if set, err := client.As[client.SetResult](f.Wait(ctx)); err != nil || !set.Applied {
//			log.Print(f.Command().Key(), err)
//		}
//	}
func (p *Pipeline) Results(ctx context.Context, commands iter.Seq[Command]) iter.Seq[*InFlight] {
	return func(yield func(*InFlight) bool) {
		ended := make(chan *InFlight, p.limit+1) // never full: at most as many as places
		places := make(chan struct{}, p.limit+1) // taken by commands that were not yielded yet
		all, stop := make(chan struct{}), make(chan struct{})
		var queueing sync.Mutex // held while a command is queued: none is once the loop has ended
		defer func() {
			close(stop)
			queueing.Lock()
			defer queueing.Unlock()
		}()
		queue := func(c Command) bool {
			queueing.Lock()
			defer queueing.Unlock()
			select {
			case <-stop:
				return false
			default:
			}
			if _, err := p.queue(ctx, c, &InFlight{pipe: p, command: &c, ended: ended}); err != nil {
				unsent := &InFlight{pipe: p, command: &c, err: err}
				unsent.over.Store(true)
				ended <- unsent
			}
			return true
		}
		go func() {
			defer close(all)
			for c := range commands {
				select {
				case places <- struct{}{}:
				case <-stop:
					return
				}
				if !queue(c) {
					return
				}
			}
			p.Flush()
		}()
		for waiting := all; waiting != nil || len(places) > 0; {
			select {
			case f := <-ended:
				if <-places; !yield(f) {
					return
				}
			case <-waiting:
				waiting = nil
			}
		}
	}
}

// Drain flushes, and waits until no request is in flight, or until ctx ends. The error is the cause of ctx.
func (p *Pipeline) Drain(ctx context.Context) error {
	for {
		freed := p.nextFreed()
		if freed == nil {
			return nil
		}
		p.Flush()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// nextFreed returns a channel that is closed when a request ends; nil if none is in flight.
func (p *Pipeline) nextFreed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.busy) == 0 {
		return nil
	}
	return p.freedLocked()
}

func (p *Pipeline) freedLocked() <-chan struct{} {
	if p.freed == nil {
		p.freed = make(chan struct{})
	}
	return p.freed
}

// Flush sends the requests that Queue has not sent yet. It does not wait.
func (p *Pipeline) Flush() {
	if p.s == nil {
		return
	}
	if conn := p.s.alive(); conn != nil {
		conn.Flush()
	}
}

// Losses returns the number of writes so far that got no usable reply. A write is counted
// before another request can take its place.
func (p *Pipeline) Losses() int { return int(p.losses.Load()) }

// Busy returns the request in flight for a key, or nil.
func (p *Pipeline) Busy(key string) *InFlight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy[key]
}

// reserve waits until no request for the key is in flight and there is room for another request. It
// then reserves the key for f, and returns an empty request.
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
		freed := p.freedLocked()
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

// endWith ends all requests whose context is ctx, which has ended.
func (p *Pipeline) endWith(ctx context.Context) {
	p.mu.Lock()
	delete(p.watched, ctx.Done())
	p.mu.Unlock()
	p.s.finishAll(func(r *request) bool { return r.ctx != nil && r.ctx.Done() == ctx.Done() }, context.Cause(ctx))
}

// free ends f, which reserved a key, and wakes the goroutines that wait for f, for the key or for room.
// It requires p.mu.
func (p *Pipeline) free(key string, f *InFlight) {
	delete(p.busy, key)
	f.over.Store(true)
	if f.awaited != nil {
		close(f.awaited)
	}
	if f.ended != nil {
		f.ended <- f
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

// Over reports whether the result is known, so that Wait returns immediately.
func (f *InFlight) Over() bool { return f.over.Load() }

// Command returns the command of an InFlight that [Pipeline.Results] yielded, and a zero Command for another.
func (f *InFlight) Command() Command {
	if f.command == nil {
		return Command{}
	}
	return *f.command
}

// Done flushes, and returns a channel that is closed when the result is known.
func (f *InFlight) Done() <-chan struct{} {
	if f.pipe == nil {
		over := make(chan struct{})
		close(over)
		return over
	}
	if !f.Over() {
		f.pipe.Flush()
	}
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

// Wait waits for the result, or until ctx ends. It returns the errors of [Session.Do] or, if ctx ends first,
// the cause of ctx; the request then goes on.
func (f *InFlight) Wait(ctx context.Context) (Result, error) {
	if f.pipe == nil {
		return nil, invalid("the zero InFlight is no request; an InFlight comes from a Pipeline")
	}
	if !f.Over() {
		select {
		case <-f.Done():
		case <-ctx.Done():
			if !f.Over() {
				return nil, context.Cause(ctx)
			}
		}
	}
	return f.result, f.err
}
