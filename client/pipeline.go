package client

import (
	"context"
	"sync"

	"github.com/sscli/sscli/client/mqtt"
)

// A Pipeline keeps several requests under way: at most a number of them, and at
// most one for each key, because the store promises no order between requests
// that are outstanding. Requests for one key go out in the order of their Send,
// when one goroutine sends; several may.
type Pipeline struct {
	s      *Session
	window chan struct{} // holds one for each request under way

	mu   sync.Mutex
	busy map[string]*InFlight // by key
}

// InFlight is a request of a Pipeline.
type InFlight struct {
	done   chan struct{}
	result Result
	err    error
}

// Pipeline returns a pipeline of at most window requests, at least one.
func (s *Session) Pipeline(window int) *Pipeline {
	return &Pipeline{s: s, window: make(chan struct{}, max(window, 1)), busy: make(map[string]*InFlight)}
}

// Send starts a request as soon as there is room for it and no other for the
// same key is under way. ctx bounds the waiting and the request, which from its
// start also has the session's time-out. An error means that nothing was sent,
// and is one of those of [Session.Do].
func (p *Pipeline) Send(ctx context.Context, c Command) (*InFlight, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	f := &InFlight{done: make(chan struct{})}
	if err := p.reserve(ctx, c.Key(), f); err != nil {
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
	// No goroutine waits for it: the one that reads the answer, or that of the timer,
	// does the rest.
	stop := context.AfterFunc(limited, func() { p.s.finish(started.id, mqtt.Message{}, context.Cause(limited)) })
	started.whenDone(func() {
		stop()
		f.result, f.err = started.wait(limited)
		cancel()
		p.release(c.Key(), f)
		p.s.wg.Done()
	})
	return f, nil
}

// reserve waits for the key, and then for room in the window, until f has both.
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

// Done is closed when Wait will not block.
func (f *InFlight) Done() <-chan struct{} { return f.done }

// Wait returns the result. The errors are those of [Session.Do].
func (f *InFlight) Wait() (Result, error) {
	<-f.done
	return f.result, f.err
}
