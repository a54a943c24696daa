package client

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/retry"
)

// refusedPause is how long a Mirror waits before it asks again for keys that the store has refused.
const refusedPause = 30 * time.Second

// A Mirror is a copy in memory of the keys that match a pattern. It follows their changes until Close, also after a lost
// connection, a restart of the store, or more changes than it could take. Several goroutines may use it.
type Mirror struct {
	s       *Session
	pattern string
	cancel  context.CancelFunc // nil for a zero Mirror
	ended   chan struct{}      // closed when run has returned

	mu      sync.Mutex
	keys    map[string]GetResult
	refused map[string]error // by key
	err     error            // see Err, apart from refused keys
	changed chan struct{}    // see Changed; nil = nobody waits
	once    sync.Once        // closes read
	read    chan struct{}    // closed when all keys have been read for the first time
}

// Mirror returns a mirror of the keys that match a pattern, as for [Scan]. It returns once all of them have been read,
// or refused by the store. ctx limits only that. The errors are those of [Session.Watch].
//
// The store announces changes of known keys at once, but no new keys: a new key is in the mirror when the mirror has
// looked for it, at the interval [DefaultRescan].
func (s *Session) Mirror(ctx context.Context, pattern string) (*Mirror, error) {
	w, err := s.Watch(ctx, nil, WatchOptions{Match: pattern, Ready: true})
	if err != nil {
		return nil, err
	}
	if !s.hold() {
		return nil, ErrClosed
	}
	m := &Mirror{
		s: s, pattern: pattern, ended: make(chan struct{}), read: make(chan struct{}),
		keys: make(map[string]GetResult), refused: make(map[string]error), err: ErrNoReply,
	}
	running, cancel := s.whileOpen(context.Background())
	m.cancel = cancel
	go func() {
		defer s.wg.Done()
		defer close(m.ended)
		m.run(running, w)
	}()
	select {
	case <-m.read:
		return m, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-running.Done():
		err = ErrClosed
	}
	m.Close()
	return nil, err
}

// Get returns the value of a key and its version. Found is false if the mirror does not have the key.
func (m *Mirror) Get(key string) GetResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.keys[key]
	r.Value = bytes.Clone(r.Value)
	return r
}

// All yields the keys that the mirror has when the loop begins, in no order.
func (m *Mirror) All() iter.Seq2[string, GetResult] {
	return func(yield func(string, GetResult) bool) {
		m.mu.Lock()
		keys := maps.Clone(m.keys)
		m.mu.Unlock()
		for key, r := range keys {
			r.Value = bytes.Clone(r.Value)
			if !yield(key, r) {
				return
			}
		}
	}
}

// Err returns nil while the mirror is whole: it has all keys that it has found, with all changes that the store has
// announced. Otherwise the error says why not: there is no connection, events were lost and the keys are being read
// again, or the store refuses a key (a *[WatchError]), which the mirror then does not have. The mirror goes on trying;
// after Close, the error is [ErrClosed].
func (m *Mirror) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cancel == nil {
		return invalid("the zero Mirror has no keys; a Mirror comes from Session.Mirror")
	}
	if m.err != nil {
		return m.err
	}
	for key, err := range m.refused {
		return &WatchError{Key: key, Err: err}
	}
	return nil
}

// Changed returns a channel that is closed when a key, or the result of Err, changes the next time.
func (m *Mirror) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed
}

// Close ends the mirror, which keeps the keys that it has.
func (m *Mirror) Close() error {
	if m.cancel == nil {
		return nil
	}
	m.cancel()
	<-m.ended
	return nil
}

// run follows the watch w, and further ones after it, until ctx ends.
func (m *Mirror) run(ctx context.Context, w *Watch) {
	defer m.fail(ErrClosed)
	for attempt := 0; ; attempt++ {
		if w != nil {
			whole, err := m.follow(ctx, w)
			if m.fail(err); whole {
				attempt = 0
			}
		}
		if m.s.sleep(ctx, retry.Pause(attempt+1, 0)) != nil {
			return
		}
		var err error
		limited, cancel := limitTo(ctx, m.s.o.Timeout)
		w, err = m.s.watch(limited, nil, WatchOptions{Match: m.pattern, Ready: true})
		cancel()
		m.fail(err)
	}
}

// fail records why the mirror is not whole; nil = nothing new.
func (m *Mirror) fail(err error) {
	if err != nil {
		m.change(func() { m.err = err })
	}
}

func (m *Mirror) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// follow takes the events of a watch until it must be replaced. whole reports whether it had read all keys. A nil error
// means that keys that were refused are due.
func (m *Mirror) follow(ctx context.Context, w *Watch) (whole bool, err error) {
	defer w.Close()              // on an error, the registration ends with the connection
	old := make(map[string]bool) // keys of an earlier watch that this one has not read
	for key := range m.All() {
		old[key] = true
	}
	refused, due := make(map[string]error), time.Now().Add(retry.Forever)
	for {
		waiting, cancel := context.WithDeadline(ctx, due)
		e, err := w.Next(waiting)
		cancel()
		if err == nil && e.Kind == EventSet && !e.HasValue {
			var now GetResult
			limited, cancel := limitTo(ctx, m.s.o.Timeout)
			now, err = m.s.Get(limited, e.Key)
			cancel()
			e.Value, e.HasValue, e.Version = now.Value, now.Found, now.Version
		}
		switch {
		case err == context.DeadlineExceeded && ctx.Err() == nil: // keys that were refused are due
			return whole, nil
		case err != nil:
			return whole, err
		case e.Kind == EventUnaudited: // a search for new keys failed
			return whole, e.Err
		case e.Kind == EventError && !isA[*InvalidError](e.Err):
			due = time.Now().Add(refusedPause)
		}
		delete(old, e.Key)
		m.change(func() {
			switch e.Kind {
			case EventInitial, EventFound, EventResync, EventSet, EventDelete:
				if delete(m.keys, e.Key); e.HasValue {
					m.keys[e.Key] = GetResult{ReplyInfo: ReplyInfo{Version: e.Version}, Value: e.Value, Found: true}
				}
			case EventError:
				delete(m.keys, e.Key)
				refused[e.Key] = e.Err
			case EventDown:
				m.err = e.Err
			case EventReady, EventUp:
				if whole = whole || e.Kind == EventReady; !whole {
					break
				}
				for key := range old {
					delete(m.keys, key)
				}
				clear(old)
				m.err = nil
				m.once.Do(func() { close(m.read) })
			}
			if whole {
				m.refused = refused
			}
		})
	}
}
