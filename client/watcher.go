package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/client/mqtt"
)

// A watcher owns the watches of a session: the connection that they are on, the
// registrations of their keys, and the order of joins, leaves, audits and resyncs. One
// goroutine, run, makes all changes. Others ask it with post, and wait no longer than their
// own contexts. It never waits for the network, so nobody waits for another's request.
//
// It does not plan sequences. For each key it knows what is the case (a registration) and
// who wants what, and sends the next request that brings these together; see
// registration.next. A lost connection clears what is the case, and the rest follows.
type watcher struct {
	s    *Session
	wake chan struct{} // the inbox is not empty; capacity 1
	over chan struct{} // closed when run has returned

	mu    sync.Mutex
	inbox []func() // for run

	// Owned by run.
	watches  map[*Watch]struct{}
	keys     map[string]*registration // all that are watched, or have to be stopped
	queue    []*registration          // those that may have a next request
	conn     *mqtt.Conn               // with the notify filter; nil while there is none
	feed     uint64                   // of conn
	requests chan *keyRequest         // to be sent on conn
	inFlight int
	doomed   error       // why conn is being closed
	dialing  bool        // an attempt to connect is under way
	attempt  int         // attempts since all watches were up
	trouble  error       // why there is no connection
	retry    *time.Timer // until the next attempt; nil = none
}

// window is how many requests of a watcher may be in flight.
const window = 256

// newWatcher starts a watcher; the caller holds s.mu, and the session is not closed.
func newWatcher(s *Session) *watcher {
	v := &watcher{
		s:       s,
		wake:    make(chan struct{}, 1),
		over:    make(chan struct{}),
		watches: make(map[*Watch]struct{}),
		keys:    make(map[string]*registration),
	}
	s.wg.Go(v.run)
	return v
}

// post has run call f, unless the session is closed before.
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
	defer close(v.over)
	for {
		select {
		case <-v.wake:
			for todo := v.take(); len(todo) > 0; todo = v.take() {
				for _, f := range todo {
					f()
				}
				v.dispatch()
			}
		case <-v.s.life.Done():
			v.stopRetry()
			for w := range v.watches {
				v.fail(w, ErrClosed)
			}
			return
		}
	}
}

func (v *watcher) take() []func() {
	v.mu.Lock()
	defer v.mu.Unlock()
	todo := v.inbox
	v.inbox = nil
	return todo
}

// join adds a watch. Its first sync ends with a word to w.joined.
func (v *watcher) join(w *Watch) {
	if v.conn != nil && v.conn.Err() != nil {
		v.lost(v.conn) // or the new watch would be one of those that lost it
	}
	v.watches[w] = struct{}{}
	w.unread = len(w.names)
	for _, key := range w.names {
		g := v.keys[key]
		if g == nil {
			g = &registration{key: key}
			v.keys[key] = g
		}
		g.watches = append(g.watches, w)
	}
	v.route(w.names)
	if v.conn == nil {
		v.connect()
		return
	}
	w.attach(v.feed)
	for _, key := range w.names {
		v.want(v.keys[key], w)
	}
}

// abandon ends the join of a watch whose time is over, unless it has ended. For a timeout the
// error names the first key that is not confirmed, and says so if there is no store.
func (v *watcher) abandon(w *Watch, cause error) {
	if w.joined == nil {
		return
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		i := slices.IndexFunc(w.names, func(key string) bool { return v.keys[key].request != nil })
		if i >= 0 {
			if p := v.keys[w.names[i]].request.sending.Load(); p != nil && p.isUnheard() {
				cause = &NoStoreError{}
			}
			cause = fmt.Errorf("watch %q: %w", w.names[i], cause)
		}
	}
	v.fail(w, cause)
}

// leave removes a watch, if it is still there. done, which may be nil, is called when its
// keys that nobody else watches are no longer registered, or that could not be asked.
func (v *watcher) leave(w *Watch, done func(error)) {
	v.remove(w)
	if done == nil {
		return
	}
	waiting, failed := 0, error(nil)
	for _, key := range w.names {
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

// remove takes a watch from its keys.
func (v *watcher) remove(w *Watch) {
	if _, ok := v.watches[w]; !ok {
		return
	}
	delete(v.watches, w)
	w.stopTimers()
	for _, key := range w.names {
		if g := v.keys[key]; g != nil {
			g.forget(w)
			v.enqueue(g)
		}
	}
	v.route(w.names)
}

// drop takes one of several keys from a watch, because of err.
func (v *watcher) drop(w *Watch, g *registration, err error) {
	audited := g.forget(w)
	w.names = slices.DeleteFunc(slices.Clone(w.names), func(key string) bool { return key == g.key })
	v.route([]string{g.key})
	if w.drop(g.key, err) {
		v.read(w)
	}
	if audited {
		v.audited(w, nil)
	}
}

// fail ends a watch because of err.
func (v *watcher) fail(w *Watch, err error) {
	v.remove(w)
	w.end(err)
	w.answer(err)
}

// route lets notifications of keys find their watches, and has the next connection
// subscribe to notifications if there are any.
func (v *watcher) route(keys []string) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	for _, key := range keys {
		if g := v.keys[key]; g != nil && len(g.watches) > 0 {
			v.s.routes[key] = route{key, slices.Clone(g.watches)}
		} else {
			delete(v.s.routes, key)
		}
	}
	v.s.notify = len(v.watches) > 0
}

// connect starts an attempt to connect, if there is a need for one.
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
		ctx, cancel := context.WithDeadline(v.s.life, until)
		defer cancel()
		conn, feed, err := v.s.subscribed(ctx)
		v.post(func() { v.connected(conn, feed, err) })
	})
}

func (v *watcher) stopRetry() {
	if v.retry != nil {
		v.retry.Stop()
		v.retry = nil
	}
}

// reconnect connects again, after a pause.
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

// connected takes the outcome of an attempt to connect.
func (v *watcher) connected(conn *mqtt.Conn, feed uint64, err error) {
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
			w.stillAway(err)
		}
		v.reconnect()
		return
	}
	if len(v.watches) == 0 {
		return
	}
	v.conn, v.feed, v.doomed = conn, feed, nil
	v.requests, v.inFlight = make(chan *keyRequest, window), 0
	for w := range v.watches {
		w.unread = len(w.names)
		w.attach(feed)
	}
	for _, key := range slices.Sorted(maps.Keys(v.keys)) {
		for _, w := range v.keys[key].watches {
			v.want(v.keys[key], w)
		}
	}
	requests := v.requests
	v.s.wg.Go(func() { v.serve(conn, requests) })
}

// lost begins an outage.
func (v *watcher) lost(conn *mqtt.Conn) {
	if v.conn != conn {
		return
	}
	err := v.doomed
	if err == nil {
		err = conn.Err()
	}
	v.conn, v.queue, v.trouble = nil, nil, err
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
		w.broken(conn.LastReceived(), err)
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

// giveUpIn ends a watch unless it is up again in a time.
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

// doom closes a connection that lives and does not answer, or refuses for the moment: it
// is of no use.
func (v *watcher) doom(err error) {
	if v.doomed != nil {
		return
	}
	v.doomed = err
	conn := v.conn
	v.s.wg.Go(func() { _ = conn.Close() }) // how it ended is in doomed
}

// want has a key read for a watch.
func (v *watcher) want(g *registration, w *Watch) {
	g.readers = append(g.readers, w)
	v.enqueue(g)
}

// enqueue looks for the next request for a key soon.
func (v *watcher) enqueue(g *registration) {
	if !g.queued {
		g.queued = true
		v.queue = append(v.queue, g)
	}
}

// dispatch sends requests as long as there are any and the window has room.
func (v *watcher) dispatch() {
	for len(v.queue) > 0 && (v.conn == nil || v.doomed == nil && v.inFlight < window) {
		g := v.queue[0]
		v.queue[0] = nil
		v.queue = v.queue[1:]
		g.queued = false
		if g.request != nil || v.conn == nil && len(g.watches) > 0 {
			continue // the answer, or the next connection, brings it back
		}
		if q := g.next(); q != nil {
			g.request = q
			v.inFlight++
			v.requests <- q // has room for the window
		} else if len(g.watches) == 0 && v.keys[g.key] == g {
			delete(v.keys, g.key)
			g.settle(nil)
		}
	}
}

// serve sends the requests on a connection, until it ends. It may wait for room in the
// broker's Receive Maximum.
func (v *watcher) serve(conn *mqtt.Conn, requests <-chan *keyRequest) {
	for {
		select {
		case q := <-requests:
			v.send(conn, q)
		case <-conn.Done():
			v.post(func() { v.lost(conn) })
			return
		}
	}
}

func (v *watcher) send(conn *mqtt.Conn, q *keyRequest) {
	q.sent = time.Now()
	p := new(pending)
	p.begins(v.s, &q.command)
	q.sending.Store(p)
	p.ended = func() { v.post(func() { v.answered(conn, q, p.result, p.err) }) }
	if err := p.start(v.s.life, conn); err != nil {
		v.post(func() { v.answered(conn, q, nil, err) })
		return
	}
	conn.Flush()
}

// answered takes the outcome of a request.
func (v *watcher) answered(conn *mqtt.Conn, q *keyRequest, r Result, err error) {
	if v.conn != conn || err != nil && conn.Err() != nil {
		return // or it is lost soon
	}
	v.inFlight--
	g := q.of
	if err != nil {
		err = fmt.Errorf("watch %q: %w", g.key, err)
	}
	switch {
	case q.kind == stop:
		g.asked = no
		g.settle(err)
	case err != nil:
		v.refused(q, err)
	case q.kind == ask:
		g.asked = yes
	default:
		for _, w := range q.readers {
			w.sync(g.key, r.(GetResult), q.sent)
			v.read(w)
		}
		for _, w := range q.auditors {
			w.compare(g.key, r.(GetResult), q.sent)
			v.audited(w, nil)
		}
	}
	g.request = nil
	v.enqueue(g)
}

// refused deals with a request that got no good answer. An error of the key ends what is
// watched of it, and nothing else. Any other ends the joins and audits that it belongs to;
// a watch that has to come back needs another connection.
func (v *watcher) refused(q *keyRequest, err error) {
	g := q.of
	if q.kind == ask && g.asked == no && !isNoStore(err) {
		g.asked = perhaps
	}
	if isKeyError(err) {
		if isStoreError(err) && q.kind == ask {
			g.asked = no
		}
		for _, w := range slices.Clone(g.watches) {
			if w.joined != nil || len(w.names) == 1 {
				v.fail(w, err)
			} else {
				v.drop(w, g, err)
			}
		}
		return
	}
	for _, w := range slices.Clone(g.watches) {
		if w.joined != nil {
			v.fail(w, err)
		}
	}
	auditors := q.auditors
	if q.kind == ask {
		auditors, g.auditors = g.auditors, nil
	}
	for _, w := range auditors {
		v.audited(w, err)
	}
	if q.kind == ask && g.asked != yes && len(g.watches) > 0 || len(q.readers) > 0 {
		v.doom(err)
	}
}

// read counts a key of a watch that was read on this connection.
func (v *watcher) read(w *Watch) {
	if w.unread--; w.unread > 0 {
		return
	}
	if w.giveUp != nil {
		w.giveUp.Stop()
		w.giveUp = nil
	}
	w.up()
	if w.joined != nil {
		if w.o.Audit > 0 {
			w.audit = time.AfterFunc(w.o.Audit, func() { v.post(func() { v.auditNow(w) }) })
		}
		w.answer(nil)
	}
	for other := range v.watches {
		if other.unread > 0 && other.joined == nil {
			return
		}
	}
	v.attempt = 0
}

// auditNow starts an audit of a watch, or says why there cannot be one.
func (v *watcher) auditNow(w *Watch) {
	if _, ok := v.watches[w]; !ok {
		return
	}
	w.audit.Reset(w.o.Audit)
	switch {
	case w.auditing > 0: // the one before says what became of it
	case v.conn == nil || w.unread > 0:
		w.unaudited(v.trouble)
	default:
		w.auditing, w.auditErr = len(w.names), nil
		for _, key := range w.names {
			g := v.keys[key]
			g.auditors, g.renew = append(g.auditors, w), true
			v.enqueue(g)
		}
	}
}

// audited counts a key of a watch that was audited; err says why it could not be.
func (v *watcher) audited(w *Watch, err error) {
	if w.auditErr == nil {
		w.auditErr = err
	}
	if w.auditing--; w.auditing == 0 && w.auditErr != nil {
		w.unaudited(w.auditErr)
	}
}
