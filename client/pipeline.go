package client

import (
	"context"
	"errors"
	"sync"

	"github.com/sscli/sscli/client/mqtt"
)

// A Pipeline keeps several requests in flight: at most one for each key, because the store
// promises no order between outstanding requests, and at most as many as its window.
// Several goroutines may use it. Requests for one key that the same goroutine sends go out
// in the order of the calls of Send.
type Pipeline struct {
	s      *Session
	window chan struct{} // one element for each request in flight

	mu     sync.Mutex
	busy   map[string]*InFlight // by key
	pauses bool                 // after a loss
	losses int                  // without a Resume
	resume chan struct{}        // closed when losses is 0 again; nil while it is 0
	end    error                // of Stop
}

// An InFlight is a request that a [Pipeline] has sent.
type InFlight struct {
	done   chan struct{}
	result Result
	err    error
}

// Pipeline returns a pipeline with a window of at least one request.
func (s *Session) Pipeline(window int) *Pipeline {
	return &Pipeline{s: s, window: make(chan struct{}, max(window, 1)), busy: make(map[string]*InFlight)}
}

// Send sends a request as soon as the window has room and no other request for the same
// key is in flight. ctx bounds the wait and the request; from its start the request also
// has Options.Timeout. An error means that nothing was sent; it is an error of
// [Session.Do].
func (p *Pipeline) Send(ctx context.Context, c Command) (*InFlight, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	f := &InFlight{done: make(chan struct{})}
	if err := p.reserve(ctx, c.Key(), f); err != nil {
		return nil, err
	}
	if err := p.unpaused(ctx); err != nil {
		p.release(c.Key(), f)
		return nil, err
	}
	if !p.s.hold() {
		p.release(c.Key(), f)
		return nil, mqtt.ErrClosed
	}
	limited, cancel := context.WithTimeout(ctx, p.s.o.Timeout)
	started, err := p.s.send(limited, c)
	if err != nil {
		cancel()
		p.release(c.Key(), f)
		p.s.wg.Done()
		return nil, err
	}
	started.then(limited, func(r Result, err error) {
		f.result, f.err = r, err
		cancel()
		p.noteLoss(f.err) // before another request has its place
		p.release(c.Key(), f)
		p.s.wg.Done()
	})
	return f, nil
}

// PauseAfterLoss makes Send wait once a write got no usable answer, until Resume was called
// for each such write. So nothing is sent that assumes what the lost answer would have said.
func (p *Pipeline) PauseAfterLoss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauses = true
}

// Resume notes that the caller knows what became of one write without a usable answer.
func (p *Pipeline) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.losses--; p.losses == 0 {
		close(p.resume)
		p.resume = nil
	}
}

// Stop makes every Send that waits after a loss, and all later ones, return err.
func (p *Pipeline) Stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = err
	if p.resume != nil {
		close(p.resume)
		p.resume = make(chan struct{})
	}
}

func (p *Pipeline) noteLoss(err error) {
	if _, lost := errors.AsType[*LostAnswerError](err); !lost {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.pauses {
		return
	}
	if p.losses++; p.losses == 1 {
		p.resume = make(chan struct{})
	}
}

// unpaused waits until there is no loss without a Resume.
func (p *Pipeline) unpaused(ctx context.Context) error {
	for {
		p.mu.Lock()
		resume, end := p.resume, p.end
		p.mu.Unlock()
		if end != nil || resume == nil {
			return end
		}
		select {
		case <-resume:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reserve waits until the key is free, and then until the window has room.
func (p *Pipeline) reserve(ctx context.Context, key string, f *InFlight) error {
	for {
		p.mu.Lock()
		before := p.busy[key]
		if before == nil {
			p.busy[key] = f
		}
		p.mu.Unlock()
		if before == nil {
			break
		}
		select {
		case <-before.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case p.window <- struct{}{}:
		return nil
	case <-ctx.Done():
		p.free(key, f)
		return context.Cause(ctx)
	}
}

func (p *Pipeline) release(key string, f *InFlight) {
	<-p.window
	p.free(key, f)
}

func (p *Pipeline) free(key string, f *InFlight) {
	p.mu.Lock()
	delete(p.busy, key)
	p.mu.Unlock()
	close(f.done)
}

// Done returns a channel that is closed when Wait no longer blocks.
func (f *InFlight) Done() <-chan struct{} { return f.done }

// Wait waits for the result. It returns the errors of [Session.Do].
func (f *InFlight) Wait() (Result, error) {
	<-f.done
	return f.result, f.err
}
