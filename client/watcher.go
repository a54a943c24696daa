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
	"github.com/sscli/sscli/internal/retry"
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
	most     int                      // the largest len(Session.routes) since routes was made
	shed     bool                     // much memory of keys was given up, and not yet returned to the system
	queue    []*registration          // registrations that may have a next request
	conn     *mqtt.Conn               // subscribed to notifications; nil while there is none
	connSeq  uint64                   // of conn
	requests chan *keyRequest         // to be sent on conn
	inFlight int                      // copies of requests that were queued and have not ended
	awaiting map[*keyRequest]struct{} // requests without a reply
	resend   *time.Timer              // calls resendLate; nil if no request waits for a reply
	useless  error                    // why conn is being closed; nil = it is not
	dialing  bool                     // an attempt to connect is under way
	attempt  int                      // attempts to connect since all watches were up
	trouble  error                    // why there is no connection
	again    *time.Timer              // starts the next attempt; nil = none
}

// newWatcher starts a watcher. The caller holds s.mu, and the session must not be closed.
func newWatcher(s *Session) *watcher {
	v := &watcher{
		s:       s,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		watches: make(map[*Watch]struct{}),

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
	w.unread = len(w.keys) + len(w.named)
	v.s.setNotify(true)
	for _, key := range w.sorted() { // of the first page of a search
		g := v.register(key, w)
		if v.conn != nil {
			w.want.reads = append(w.want.reads, g)
		}
	}
	if v.conn == nil {
		v.connect()
		return
	}
	w.setConn(v.connSeq)
	v.checkRead(w)
}

// register adds a watch to a key, and returns the key's registration.
func (v *watcher) register(key string, w *Watch) *registration {
	v.s.mu.Lock()
	g := v.s.routes[key]
	if g == nil {
		g = &registration{key: key}
		v.s.routes[key] = g
		v.most = max(v.most, len(v.s.routes))
	}
	if len(g.watches) == 0 {
		g.watches = w.alone
	} else {
		g.watches = append(slices.Clip(g.watches), w)
	}
	v.s.mu.Unlock()
	if q := g.request; q != nil && time.Since(q.last) > resendSoon {
		v.sendAgain(q) // its reply may be lost, and the new watch may have little time
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
		for _, key := range w.sorted() {
			g := v.s.routes[key]
			if g == nil || g.request == nil {
				continue
			}
			if r := g.request.request.Load(); r != nil && r.hasNoSubscribers() {
				cause = &NoStoreError{}
			}
			cause = &WatchError{Key: key, Err: cause}
			break
		}
	}
	v.fail(w, cause)
}

// leave removes a watch, if it is still there. Unless done is nil, leave calls done once the keys that no
// other watch needs are unregistered. The argument is an error if a key may still be registered.
func (v *watcher) leave(w *Watch, done func(error)) {
	v.remove(w)
	w.endJoin(w.ended())
	if done == nil {
		return
	}
	waiting, failed := 0, error(nil)
	for key := range w.keys {
		g := v.s.routes[key]
		if g == nil || len(g.watches) > 0 {
			continue
		}
		waiting++
		g.needs().stopped = append(g.needs().stopped, func(err error) {
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
	w.want = wanted{}
	w.stopTimers()
	for key := range w.keys {
		if g := v.s.routes[key]; g != nil {
			v.unregister(g, w)
			v.enqueue(g)
		}
	}
	v.s.setNotify(len(v.watches) > 0)
}

// drop removes one key from a watch because of err. The watch continues.
func (v *watcher) drop(w *Watch, g *registration, err error) {
	audited := v.unregister(g, w)
	if w.drop(g.key, err) {
		v.countRead(w)
	}
	if audited {
		v.countAudited(w, nil)
	}
}

func (v *watcher) fail(w *Watch, err error) {
	v.remove(w)
	w.end(err)
	w.endJoin(err)
}

func (s *Session) setNotify(notify bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = notify
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
		ctx, cancel := context.WithDeadlineCause(v.s.ctx, until, ErrNoReply)
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
	if v.again != nil {
		v.again.Stop()
		v.again = nil
	}
}

// reconnect connects again, after a pause that grows with each attempt.
func (v *watcher) reconnect() {
	pause := retry.Pause(v.attempt, 0)
	v.attempt++
	if pause == 0 {
		v.connect()
		return
	}
	v.stopRetry()
	v.again = time.AfterFunc(pause, func() { v.post(v.connect) })
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
		w.unread = len(w.keys) + len(w.named)
		w.setConn(connSeq)
	}
	for _, key := range slices.Sorted(maps.Keys(v.s.routes)) {
		g := v.s.routes[key]
		for _, w := range g.watches {
			w.want.reads = append(w.want.reads, g)
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
	for key, g := range v.s.routes {
		if g.reset(); len(g.watches) == 0 {
			v.s.mu.Lock()
			delete(v.s.routes, key)
			v.s.mu.Unlock()
		}
	}
	final := v.s.isFinal(err)
	for w := range v.watches {
		w.want = wanted{}
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
