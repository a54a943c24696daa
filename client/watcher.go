package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
)

// A watcher manages the watches of a session: their connection, the registrations of their
// keys, and the order of joins, leaves, audits and resyncs. One goroutine, run, makes all
// changes. Other goroutines ask for changes with post, and wait no longer than their own
// contexts. run never waits for the network, so no watch waits for another watch's request.
//
// The watcher does not plan sequences of requests. A registration holds the current state of a key
// and what the key's watches need, and registration.next returns the request that is due next.
// A lost connection resets all registrations, so every key is registered and read again.
type watcher struct {
	s    *Session
	wake chan struct{} // the inbox is not empty; capacity 1
	done chan struct{} // closed when run has returned

	mu    sync.Mutex
	inbox []func() // functions for run to call

	// Owned by run.
	watches  map[*Watch]struct{}
	keys     map[string]*registration // the keys that are watched or must be unregistered
	most     int                      // the largest len(keys) since keys was made
	shed     bool                     // much memory of keys was given up, and not yet returned to the system
	queue    []*registration          // registrations that may have a next request
	conn     *mqtt.Conn               // subscribed to notifications; nil while there is none
	connSeq  uint64                   // of conn
	requests chan *keyRequest         // to be sent on conn
	inFlight int                      // copies of requests that were queued and have not ended
	awaiting map[*keyRequest]struct{} // requests without an answer
	resend   *time.Timer              // calls resendLate; nil if no request waits for an answer
	useless  error                    // why conn is being closed; nil = it is not
	dialing  bool                     // an attempt to connect is under way
	attempt  int                      // attempts to connect since all watches were up
	trouble  error                    // why there is no connection
	retry    *time.Timer              // starts the next attempt; nil = none
}

// newWatcher starts a watcher. The caller holds s.mu, and the session must not be closed.
func newWatcher(s *Session) *watcher {
	v := &watcher{
		s:       s,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		watches: make(map[*Watch]struct{}),
		keys:    make(map[string]*registration),

		awaiting: make(map[*keyRequest]struct{}),
	}
	s.wg.Go(v.run)
	return v
}

// post makes run call f, unless the session closes first.
func (v *watcher) post(f func()) {
	v.mu.Lock()
	v.inbox = append(v.inbox, f)
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

func (v *watcher) run() {
	defer close(v.done)
	for {
		select {
		case <-v.wake:
			for posted := v.posted(); len(posted) > 0; posted = v.posted() {
				for _, f := range posted {
					f()
				}
				v.dispatch()
			}
			v.giveBack()
		case <-v.s.ctx.Done():
			v.stopRetry()
			if v.resend != nil {
				v.resend.Stop()
			}
			for w := range v.watches {
				v.fail(w, ErrClosed)
			}
			return
		}
	}
}

// posted empties the inbox and returns the functions that were in it.
func (v *watcher) posted() []func() {
	v.mu.Lock()
	defer v.mu.Unlock()
	inbox := v.inbox
	v.inbox = nil
	return inbox
}

// join adds a watch. w.joined receives nil once all keys of the watch have been read, or an error.
func (v *watcher) join(w *Watch) {
	if v.conn != nil && v.conn.Err() != nil {
		v.lost(v.conn) // before the new watch is added, so that it is not part of the outage
	}
	v.watches[w] = struct{}{}
	w.unread = len(w.keys)
	names := w.sorted()
	for _, key := range names {
		v.register(key, w)
	}
	v.route(names)
	if v.conn == nil {
		v.connect()
		return
	}
	w.setConn(v.connSeq)
	for _, key := range names {
		v.wantRead(v.keys[key], w)
	}
	v.checkRead(w)
}

// register adds a watch to a key, and returns the key's registration.
func (v *watcher) register(key string, w *Watch) *registration {
	g := v.keys[key]
	if g == nil {
		g = &registration{key: key}
		v.keys[key] = g
		v.most = max(v.most, len(v.keys))
	}
	g.watches = append(g.watches, w)
	if q := g.request; q != nil && time.Since(q.last) > resendSoon {
		v.sendAgain(q) // its answer may be lost, and the new watch may have little time
	}
	return g
}

// endJoin ends a join whose context ended because of cause, unless the join is over. After a
// timeout, the error is a *WatchError for the first key whose request is in flight, if there is
// one. The *WatchError wraps a *NoStoreError if no store has received that request.
func (v *watcher) endJoin(w *Watch, cause error) {
	if w.joined == nil {
		return
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		names := w.sorted()
		i := slices.IndexFunc(names, func(key string) bool { return v.keys[key].request != nil })
		if i >= 0 {
			if r := v.keys[names[i]].request.request.Load(); r != nil && r.hasNoSubscribers() {
				cause = &NoStoreError{}
			}
			cause = &WatchError{Key: names[i], Err: cause}
		}
	}
	v.fail(w, cause)
}

// leave removes a watch, if it is still there. Unless done is nil, leave calls done once the keys that no
// other watch needs are unregistered. The argument is an error if a key may still be registered.
func (v *watcher) leave(w *Watch, done func(error)) {
	v.remove(w)
	if done == nil {
		return
	}
	waiting, failed := 0, error(nil)
	for key := range w.keys {
		g := v.keys[key]
		if g == nil || len(g.watches) > 0 {
			continue
		}
		waiting++
		g.stopped = append(g.stopped, func(err error) {
			if waiting--; failed == nil {
				failed = err
			}
			if waiting == 0 {
				done(failed)
			}
		})
	}
	if waiting == 0 {
		done(nil)
	}
}

func (v *watcher) remove(w *Watch) {
	if _, ok := v.watches[w]; !ok {
		return
	}
	delete(v.watches, w)
	w.stopTimers()
	names := w.sorted()
	for _, key := range names {
		if g := v.keys[key]; g != nil {
			g.remove(w)
			v.enqueue(g)
		}
	}
	v.route(names)
}

// drop removes one key from a watch because of err. The watch continues.
func (v *watcher) drop(w *Watch, g *registration, err error) {
	audited := g.remove(w)
	v.route([]string{g.key})
	if w.drop(g.key, err) {
		v.countRead(w)
	}
	if audited {
		v.countAudited(w, nil)
	}
}

// fail ends a watch because of err.
func (v *watcher) fail(w *Watch, err error) {
	v.remove(w)
	w.end(err)
	w.answerJoin(err)
}

// route updates Session.routes, by which the receiver finds the watches of these keys, and
// Session.notify.
func (v *watcher) route(keys []string) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	for _, key := range keys {
		if g := v.keys[key]; g != nil && len(g.watches) > 0 {
			v.s.routes[key] = slices.Clone(g.watches)
		} else {
			delete(v.s.routes, key)
		}
	}
	v.s.notify = len(v.watches) > 0
}

// connect starts an attempt to connect if there are watches but no connection.
func (v *watcher) connect() {
	if v.conn != nil || v.dialing || len(v.watches) == 0 {
		return
	}
	v.stopRetry()
	v.dialing = true
	until := time.Now().Add(v.s.o.Timeout)
	for w := range v.watches {
		if w.joined != nil && w.deadline.After(until) {
			until = w.deadline
		}
	}
	v.s.wg.Go(func() {
		ctx, cancel := context.WithDeadlineCause(v.s.ctx, until, ErrNoAnswer)
		defer cancel()
		conn, connSeq, err := v.s.subscribed(ctx)
		v.post(func() { v.connected(conn, connSeq, err) })
	})
}

// resume connects without a pause, because the session has a new connection.
func (v *watcher) resume() {
	if v.conn != nil && v.conn.Err() != nil {
		v.lost(v.conn)
	}
	v.connect()
}

func (v *watcher) stopRetry() {
	if v.retry != nil {
		v.retry.Stop()
		v.retry = nil
	}
}

// reconnect connects again, after a pause that grows with each attempt.
func (v *watcher) reconnect() {
	pause := backOff(v.attempt)
	v.attempt++
	if pause == 0 {
		v.connect()
		return
	}
	v.stopRetry()
	v.retry = time.AfterFunc(pause, func() { v.post(v.connect) })
}

// connected handles the outcome of an attempt to connect.
func (v *watcher) connected(conn *mqtt.Conn, connSeq uint64, err error) {
	v.dialing = false
	if err == nil {
		err = conn.Err()
	}
	if err != nil {
		v.trouble = err
		final := v.s.isFinal(err)
		for w := range v.watches {
			if final || w.joined != nil {
				v.fail(w, err)
				continue
			}
			w.setTrouble(err)
		}
		v.reconnect()
		return
	}
	if len(v.watches) == 0 {
		return
	}
	v.conn, v.connSeq, v.useless = conn, connSeq, nil
	v.requests, v.inFlight = make(chan *keyRequest, 2*maxKeyRequests), 0
	for w := range v.watches {
		w.unread = len(w.keys)
		w.setConn(connSeq)
	}
	for _, key := range slices.Sorted(maps.Keys(v.keys)) {
		for _, w := range v.keys[key].watches {
			v.wantRead(v.keys[key], w)
		}
	}
	for w := range v.watches {
		v.checkRead(w)
	}
	requests := v.requests
	v.s.wg.Go(func() { v.serve(conn, requests) })
}

// lost handles the loss of a connection. It begins an outage for each watch that can recover,
// and ends the others.
func (v *watcher) lost(conn *mqtt.Conn) {
	if v.conn != conn {
		return
	}
	err := v.useless
	if err == nil {
		err = conn.Err()
	}
	v.conn, v.queue, v.trouble = nil, nil, err
	clear(v.awaiting)
	for key, g := range v.keys {
		g.reset()
		if len(g.watches) == 0 {
			delete(v.keys, key)
		}
	}
	final := v.s.isFinal(err)
	for w := range v.watches {
		if final || w.joined != nil {
			v.fail(w, err)
			continue
		}
		w.down(conn.LastPing(), err)
		if w.auditing > 0 {
			w.auditing = 0
			w.unaudited(err)
		}
		if w.o.RetryFor > 0 && w.giveUp == nil {
			v.giveUpIn(w, w.o.RetryFor)
		}
	}
	v.reconnect()
}

// giveUpIn ends a watch unless it is up again within d.
func (v *watcher) giveUpIn(w *Watch, d time.Duration) {
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		v.post(func() {
			if w.giveUp == timer {
				v.fail(w, fmt.Errorf("no connection for %v: %w", d, v.trouble))
			}
		})
	})
	w.giveUp = timer
}

// closeUseless closes a connection that works, but on which the store does not answer requests,
// or refuses them with an error that may be temporary.
func (v *watcher) closeUseless(err error) {
	if v.useless != nil {
		return
	}
	v.useless = err
	conn := v.conn
	v.s.wg.Go(func() { _ = conn.Close() }) // v.useless is the error to report
}
