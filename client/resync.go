package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// watching is what a Session knows of its watches. Session.mu guards the maps
// and flags.
type watching struct {
	all        map[*Watch]struct{}
	byKey      map[string][]*Watch // slices are replaced, never changed
	asked      map[string]bool     // keys with a KEYNOTIFY on this connection
	subscribed bool                // this connection has the notify filter
	kept       bool                // keepWatching runs

	syncing chan struct{} // held by whoever registers and reads keys; capacity 1
}

func newWatching() watching {
	return watching{
		all:     make(map[*Watch]struct{}),
		byKey:   make(map[string][]*Watch),
		asked:   make(map[string]bool),
		syncing: make(chan struct{}, 1),
	}
}

// connected begins a new connection; it wants Session.mu.
func (w *watching) connected(subscribed bool) {
	w.subscribed, w.asked = subscribed, make(map[string]bool)
}

// lockSync waits for its turn to register and read keys.
func (s *Session) lockSync(ctx context.Context) error {
	select {
	case s.watching.syncing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Session) unlockSync() { <-s.watching.syncing }

// join adds a watch and gives it its first sync.
func (s *Session) join(ctx context.Context, w *Watch, keys []string) error {
	s.mu.Lock()
	s.watching.all[w] = struct{}{}
	for key := range w.keys {
		s.watching.byKey[key] = append(slices.Clone(s.watching.byKey[key]), w)
	}
	s.mu.Unlock()
	if err := s.lockSync(ctx); err != nil {
		return err
	}
	defer s.unlockSync()
	conn, err := s.subscribed(ctx)
	if err != nil {
		return err
	}
	err = s.sync(ctx, conn, keys, func(key string, r Result) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.synced(key, r.(GetResult), time.Now())
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.ready, w.conn, w.audit = true, conn, time.Now()
	w.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return mqtt.ErrClosed
	}
	if !s.watching.kept {
		s.watching.kept = true
		s.wg.Go(func() { s.keepWatching(conn) })
	}
	return nil
}

// leave removes a watch and returns the keys that nobody watches any more.
func (s *Session) leave(w *Watch) (free []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.watching.all[w]; !ok {
		return nil
	}
	delete(s.watching.all, w)
	for key := range w.keys {
		rest := slices.DeleteFunc(slices.Clone(s.watching.byKey[key]), func(other *Watch) bool { return other == w })
		s.watching.byKey[key] = rest
		if len(rest) == 0 {
			delete(s.watching.byKey, key)
			free = append(free, key)
		}
	}
	return free
}

// stopNotify takes back the KEYNOTIFY of keys, if the connection still has it.
func (s *Session) stopNotify(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	if err := s.lockSync(ctx); err != nil {
		return err
	}
	defer s.unlockSync()
	s.mu.Lock()
	conn := s.conn
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return !s.watching.asked[key] || len(s.watching.byKey[key]) > 0
	})
	for _, key := range keys {
		delete(s.watching.asked, key)
	}
	s.mu.Unlock()
	if conn.Err() != nil {
		return nil // the store forgot them with the connection
	}
	return s.many(ctx, conn, keys, keyNotifyStop, func(string, Result) {})
}

// subscribed returns a connection that has the notify filter.
func (s *Session) subscribed(ctx context.Context) (*mqtt.Conn, error) {
	limited, cancel := s.limit(ctx)
	defer cancel()
	conn, err := s.connection(limited)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	has := s.watching.subscribed && s.conn == conn
	s.mu.Unlock()
	if has {
		return conn, nil
	}
	if err := conn.Subscribe(limited, wire.NotifyFilter(s.o.ClientID)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		s.watching.subscribed = true
	}
	return conn, nil
}

// sync asks for the notifications of keys and, when that is confirmed, reads
// them.
func (s *Session) sync(ctx context.Context, conn *mqtt.Conn, keys []string, got func(string, Result)) error {
	s.mu.Lock()
	ask := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return s.watching.asked[key] })
	s.mu.Unlock()
	err := s.many(ctx, conn, ask, keyNotify, func(key string, _ Result) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn == conn {
			s.watching.asked[key] = true
		}
	})
	if err != nil {
		return err
	}
	return s.many(ctx, conn, keys, Get, got)
}

// many sends a command for each key over one connection, a window of them at a
// time, and hands over the replies in order.
func (s *Session) many(ctx context.Context, conn *mqtt.Conn, keys []string, command func(string) Command, got func(string, Result)) error {
	const window = 256
	type request struct {
		pending *pending
		ctx     context.Context
		cancel  context.CancelFunc
	}
	var under []request // way
	defer func() {
		for _, r := range under {
			s.take(r.pending.id)
			r.cancel()
		}
	}()
	next := 0
	for _, key := range keys {
		for ; next < len(keys) && len(under) < window; next++ {
			limited, cancel := context.WithTimeout(ctx, s.o.Timeout)
			p, err := s.sendOn(limited, conn, command(keys[next]))
			if err != nil {
				cancel()
				return fmt.Errorf("watch %q: %w", keys[next], err)
			}
			under = append(under, request{p, limited, cancel})
		}
		reply, err := under[0].pending.waitBriefly(under[0].ctx)
		under[0].cancel()
		under = under[1:]
		if err != nil {
			return fmt.Errorf("watch %q: %w", key, err)
		}
		got(key, reply)
	}
	return nil
}

// keepWatching makes the connection again for the watches, as long as there are
// any.
func (s *Session) keepWatching(conn *mqtt.Conn) {
	for conn != nil {
		select {
		case <-conn.Done():
			conn = s.rejoin(conn)
		case <-s.life.Done():
			conn = nil
		}
	}
	if s.life.Err() != nil {
		for w := range s.watches() {
			w.end(mqtt.ErrClosed)
		}
	}
}

// watches returns those that had their first sync.
func (s *Session) watches() map[*Watch]struct{} {
	s.mu.Lock()
	all := maps.Clone(s.watching.all)
	s.mu.Unlock()
	maps.DeleteFunc(all, func(w *Watch, _ struct{}) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.ready || w.err != nil
	})
	return all
}

// rejoin brings the watches onto a new connection. It returns nil when none is
// left, or none can be served.
func (s *Session) rejoin(lost *mqtt.Conn) *mqtt.Conn {
	ctx := s.life
	if s.lockSync(ctx) != nil {
		return nil
	}
	defer s.unlockSync()
	begin, err := time.Now(), lost.Err()
	for attempt := 0; ; attempt++ {
		left := s.mark(lost, begin, err)
		if left == 0 || ctx.Err() != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.watching.kept = false
			return nil
		}
		if !pause(ctx, backOff(attempt)) {
			continue
		}
		var conn *mqtt.Conn
		if conn, err = s.subscribed(ctx); err != nil {
			continue
		}
		if err = s.resync(ctx, conn); err == nil {
			return conn
		}
		// A connection that lives and does not answer, or refuses for the moment,
		// is of no use either. How it ended is in err.
		_ = conn.Close()
		lost = conn
	}
}

// mark tells the watches that were on a lost connection, and ends those for
// which there is no hope; it returns how many are left.
func (s *Session) mark(lost *mqtt.Conn, begin time.Time, err error) (left int) {
	final := s.isFinal(err)
	for w := range s.watches() {
		w.mu.Lock()
		if !final && (w.conn == lost || !w.outage.IsZero()) {
			w.broken(lost.LastReceived(), err)
		}
		switch {
		case final:
			w.endLocked(err)
		case w.o.RetryFor > 0 && time.Since(begin) >= w.o.RetryFor:
			w.endLocked(fmt.Errorf("no connection for %v: %w", w.o.RetryFor, err))
		default:
			left++
		}
		w.mu.Unlock()
	}
	return left
}

// isFinal tells whether trying again would only repeat the error.
func (s *Session) isFinal(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*wire.StoreError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*AnswerError](err); ok {
		return true
	}
	return s.isHopeless(err)
}

// resync registers and reads every key that is not watched on this connection.
func (s *Session) resync(ctx context.Context, conn *mqtt.Conn) error {
	watches := s.watches()
	keys := make(map[string]bool)
	for w := range watches {
		w.mu.Lock()
		for key, k := range w.keys {
			if k.holding {
				keys[key] = true
			}
		}
		w.mu.Unlock()
	}
	err := s.sync(ctx, conn, slices.Sorted(maps.Keys(keys)), func(key string, r Result) {
		for w := range watches {
			w.mu.Lock()
			w.synced(key, r.(GetResult), time.Now())
			w.mu.Unlock()
		}
	})
	if err != nil {
		return err
	}
	for w := range watches {
		w.mu.Lock()
		w.conn = conn
		if !w.outage.IsZero() {
			w.outage = time.Time{}
			w.push(Event{Kind: EventUp, Time: time.Now()})
		}
		w.mu.Unlock()
	}
	return nil
}

// audit asks for all notifications of a watch again and compares every key with
// what is known of it. A break in between leaves the rest to the resync.
func (s *Session) audit(w *Watch) {
	ctx := s.life
	if s.lockSync(ctx) != nil {
		return
	}
	defer s.unlockSync()
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	w.mu.Lock()
	current := w.conn == conn && w.err == nil
	keys := slices.Sorted(maps.Keys(w.keys))
	w.mu.Unlock()
	if !current {
		return
	}
	err := s.many(ctx, conn, keys, keyNotify, func(string, Result) {})
	if err == nil {
		err = s.many(ctx, conn, keys, Get, func(key string, r Result) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.audited(key, r.(GetResult), time.Now())
		})
	}
	if s.isFinal(err) {
		w.end(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audit = time.Now()
}

// backOff is how long to wait before a further attempt: none before the first,
// then 100 ms and twice as long each time up to 10 s, less up to a half at
// random, so that clients do not come back all at once.
func backOff(attempt int) time.Duration {
	if attempt == 0 {
		return 0
	}
	const first, longest = 100 * time.Millisecond, 10 * time.Second
	d := min(first<<min(attempt-1, 20), longest)
	return d/2 + rand.N(d/2)
}

// pause waits; false means that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
