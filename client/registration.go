package client

import (
	"bytes"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
)

// A registration is the state of one watched key on the current connection: whether the store
// sends notifications for the key, and which requests its watches still need.
type registration struct {
	key     string
	watches []*Watch // never changed in place; Session.mu is held when it is replaced
	state   regState
	renew   bool        // register again, for an audit
	queued  bool        // in watcher.queue
	request *keyRequest // the request in flight; at most one, so that requests keep their order
	todo    *todo       // see needs; nil = nothing
}

// A todo says what must still be done for a key.
type todo struct {
	readers, auditors []*Watch      // the watches that need a GET
	stopped           []func(error) // called when the registration has ended
}

// needs returns what must still be done for the key.
func (g *registration) needs() *todo {
	if g.todo == nil {
		g.todo = &todo{}
	}
	return g.todo
}

// regState says whether the key is registered at the store, as far as the watcher knows.
type regState uint8

const (
	regNone    regState = iota
	regUnknown          // KEYNOTIFY was sent but not confirmed
	regConfirmed
)

type keyRequest struct {
	of                *registration
	op                keyOp
	command           Command
	readers, auditors []*Watch                // the watches that this GET is for
	sent              time.Time               // when the first copy was sent
	request           atomic.Pointer[request] // the last copy; nil before one is sent

	// A reply can be lost, so a request is sent again if there is no reply. All copies mean the same, and
	// the first reply counts.
	last  time.Time     // when the last copy was queued
	pause time.Duration // until the next copy
	over  bool          // a copy was answered
}

// The first copy of a request is sent again after resendPause, later ones after twice the pause
// before. A new watch of the key does not wait for that, unless the last copy is younger than
// resendSoon.
const (
	resendPause = time.Second
	resendSoon  = 100 * time.Millisecond
)

type keyOp int

const (
	opRegister   keyOp = iota // KEYNOTIFY
	opRead                    // GET
	opUnregister              // KEYNOTIFY STOP
)

// next returns the next request for the key, or nil if there is nothing to do. The first request is
// KEYNOTIFY. Then comes one GET for all watches that need a GET at that time, and KEYNOTIFY STOP once
// no watch has the key. A watch that is added after a GET needs another GET, or it would miss the
// changes in between.
func (g *registration) next() *keyRequest {
	switch {
	case len(g.watches) == 0 && g.state == regNone:
		return nil
	case len(g.watches) == 0:
		return &keyRequest{of: g, op: opUnregister, command: keyNotifyStop(g.key)}
	case g.state != regConfirmed || g.renew:
		g.renew = false
		return &keyRequest{of: g, op: opRegister, command: keyNotify(g.key)}
	case len(g.needs().readers)+len(g.needs().auditors) > 0:
		q := &keyRequest{of: g, op: opRead, command: Get(g.key), readers: g.todo.readers, auditors: g.todo.auditors}
		g.todo.readers, g.todo.auditors = nil, nil
		return q
	}
	g.todo = nil
	return nil
}

// unregister removes a watch from a key. It reports whether the watch was waiting for an audit of
// the key.
func (v *watcher) unregister(g *registration, w *Watch) (audited bool) {
	without := func(watches []*Watch) []*Watch {
		left := slices.DeleteFunc(watches, func(other *Watch) bool { return other == w })
		w.want.asked -= len(watches) - len(left)
		return left
	}
	t := g.needs()
	auditors := len(t.auditors)
	t.readers, t.auditors = without(t.readers), without(t.auditors)
	audited = len(t.auditors) < auditors
	if q := g.request; q != nil {
		auditors = len(q.auditors)
		q.readers, q.auditors = without(q.readers), without(q.auditors)
		audited = audited || len(q.auditors) < auditors
	}
	var left []*Watch
	if len(g.watches) > 1 {
		left = slices.DeleteFunc(slices.Clone(g.watches), func(other *Watch) bool { return other == w })
	}
	v.s.mu.Lock()
	g.watches = left
	v.s.mu.Unlock()
	return audited
}

// reset clears a registration whose connection was lost.
func (g *registration) reset() {
	g.state, g.renew, g.queued, g.request = regNone, false, false, nil
	g.needs().readers, g.needs().auditors = nil, nil
	g.notifyStopped(nil)
}

// notifyStopped calls each function in g.stopped once. err is nil if the registration has certainly
// ended.
func (g *registration) notifyStopped(err error) {
	stopped := g.needs().stopped
	g.todo.stopped = nil
	for _, f := range stopped {
		f(err)
	}
}

// maxKeyRequests is the maximum number of a watcher's requests in flight.
const maxKeyRequests = 256

// maxReplies is how many replies a watch requests before its consumer takes them.
const maxReplies = 16384

// wanted holds the keys that a watch must read, to know their state, and those that it must audit.
type wanted struct {
	reads, audits []*registration
	asked         int // requested and not answered
}

// ask requests what a watch wants to read, as far as its consumer keeps pace: a watch may have more keys
// than the memory has room for their values, and its first events must not wait for its last keys.
func (v *watcher) ask(w *Watch) {
	if v.conn == nil {
		return
	}
	replies := int(w.replies.Load())
	if replies >= maxReplies/2 {
		w.endJoin(nil) // or nobody would consume
	}
	want := &w.want
	for want.asked+replies < maxReplies {
		if len(want.reads) == 0 && len(w.named) > 0 {
			key := w.named[0]
			w.named = w.named[1:]
			if w.addNamed(key) {
				want.reads = append(want.reads, v.register(key, w))
			} else {
				v.countRead(w)
			}
			continue
		}
		next := &want.reads
		if len(want.reads) == 0 {
			next = &want.audits
		}
		if len(*next) == 0 {
			return
		}
		g := (*next)[0]
		*next = (*next)[1:]
		isAudit := next == &want.audits
		switch {
		case !slices.Contains(g.watches, w): // the store has refused the key since, or the watch has let it go
			if isAudit {
				v.countAudited(w, nil)
			}
			continue
		case isAudit:
			g.needs().auditors, g.renew = append(g.needs().auditors, w), true
		default:
			g.needs().readers = append(g.needs().readers, w)
		}
		want.asked++
		v.enqueue(g)
	}
}

// enqueue adds a registration to the queue, so that dispatch looks for its next request.
func (v *watcher) enqueue(g *registration) {
	if !g.queued {
		g.queued = true
		v.queue = append(v.queue, g)
	}
}

// dispatch sends requests until the queue is empty or maxKeyRequests are in flight.
func (v *watcher) dispatch() {
	for len(v.queue) > 0 && (v.conn == nil || v.useless == nil && v.inFlight < maxKeyRequests) {
		g := v.queue[0]
		v.queue[0] = nil
		v.queue = v.queue[1:]
		g.queued = false
		if g.request != nil || v.conn == nil && len(g.watches) > 0 {
			continue // the reply or the next connection enqueues g again
		}
		if q := g.next(); q != nil {
			g.request = q
			v.awaiting[q] = struct{}{}
			q.pause = resendPause
			v.queueCopy(q)
		} else if len(g.watches) == 0 && v.s.routes[g.key] == g {
			v.s.mu.Lock()
			delete(v.s.routes, g.key)
			v.shrinkKeys()
			v.s.mu.Unlock()
			g.notifyStopped(nil)
		}
	}
}

// shrinkKeys gives up memory once most keys are no longer watched. It requires Session.mu.
func (v *watcher) shrinkKeys() {
	if len(v.s.routes) >= v.most/4 {
		return
	}
	v.shed = v.shed || v.most > manyKeys
	v.s.routes = shrunk(v.s.routes)
	v.most = len(v.s.routes)
}

// manyKeys is how many keys must have been given up for giveBack to return their memory, and how many may be missing
// for forgetAfter.
const manyKeys = 4096

// giveBack returns memory that was given up to the system, once no key is about to follow. A process in which
// little happens would keep the memory for minutes.
func (v *watcher) giveBack() {
	if v.shed && len(v.watches) > 0 && len(v.queue) == 0 && len(v.awaiting) == 0 {
		v.shed = false
		v.s.wg.Go(debug.FreeOSMemory)
	}
}

// queueCopy queues a request to be sent, for the first time or again.
func (v *watcher) queueCopy(q *keyRequest) {
	q.last = time.Now()
	v.inFlight++
	v.requests <- q // never blocks: the channel has room for two copies of each request
	if v.resend == nil {
		v.resend = time.AfterFunc(resendPause, func() { v.post(v.resendLate) })
	}
}

// resendLate sends requests again that have had no reply for a while.
func (v *watcher) resendLate() {
	v.resend = nil
	for q := range v.awaiting {
		if time.Since(q.last) >= q.pause {
			v.sendAgain(q)
		}
	}
	if len(v.awaiting) > 0 && v.resend == nil {
		v.resend = time.AfterFunc(resendPause/4, func() { v.post(v.resendLate) })
	}
}

// sendAgain sends another copy of a request, if there is room.
func (v *watcher) sendAgain(q *keyRequest) {
	if v.conn != nil && v.useless == nil && v.inFlight < 2*maxKeyRequests {
		q.pause *= 2
		v.queueCopy(q)
	}
}

// serve sends the requests on a connection until the connection ends. It may wait until the
// broker's Receive Maximum allows another request.
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
	if q.sent.IsZero() {
		q.sent = time.Now()
	}
	r := &request{s: v.s, command: q.command}
	r.onEnd = func(r *request) { v.post(func() { v.answered(conn, q, r.result, r.err) }) }
	q.request.Store(r)
	if err := r.startAlone(v.s.ctx, conn); err != nil {
		v.post(func() { v.answered(conn, q, nil, err) })
		return
	}
	conn.Flush()
}

// answered handles the outcome of a request.
func (v *watcher) answered(conn *mqtt.Conn, q *keyRequest, r Result, err error) {
	if v.conn != conn || err != nil && conn.Err() != nil {
		return // the connection is lost; v.lost has been called or will be soon
	}
	v.inFlight--
	g := q.of
	if q.over {
		if q.op == opUnregister && len(g.watches) > 0 {
			// The store may have handled this copy of STOP after the KEYNOTIFY of a new watch.
			g.renew = true
			v.enqueue(g)
		}
		return
	}
	q.over = true
	delete(v.awaiting, q)
	if err != nil {
		err = &WatchError{Key: g.key, Err: err}
	}
	switch {
	case q.op == opUnregister:
		g.state = regNone
		g.notifyStopped(err)
	case err != nil:
		v.refused(q, err)
	case q.op == opRegister:
		g.state = regConfirmed
	default:
		now, shared := r.(GetResult), false
		own := func() GetResult { // each watch gets a value of its own
			if shared {
				now.Value = bytes.Clone(now.Value)
			}
			shared = true
			return now
		}
		for _, w := range q.readers {
			w.want.asked--
			if w.sync(g.key, own(), q.sent) {
				v.countRead(w)
			}
			v.ask(w)
		}
		for _, w := range q.auditors {
			w.want.asked--
			w.compare(g.key, own(), q.sent)
			v.countAudited(w, nil)
			v.ask(w)
		}
	}
	g.request = nil
	v.enqueue(g)
}

// refused handles a request that failed. An error about the key removes the key from its watches; it
// ends a watch without a pattern that is still joining or has no other key. Any other error fails the
// joins and audits that need the request. If a watch must recover, or an audit timed out on a silent
// connection, the watcher also closes the connection and makes a new one.
func (v *watcher) refused(q *keyRequest, err error) {
	g := q.of
	if q.op == opRegister && g.state == regNone && !isA[*NoStoreError](err) {
		g.state = regUnknown
	}
	// With one of these errors, a retry on another connection would fail too.
	if isA[*ReplyError](err) || isA[*TooLargeError](err) || isA[*StoreError](err) || isRefusal(err) {
		if isA[*StoreError](err) && q.op == opRegister {
			g.state = regNone
		}
		for _, w := range slices.Clone(g.watches) {
			if w.o.Match == "" && (w.joined != nil || len(w.keys)+len(w.named) == 1) {
				v.fail(w, err)
			} else {
				v.drop(w, g, err)
				v.ask(w)
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
	if q.op == opRegister {
		auditors, g.needs().auditors = g.needs().auditors, nil
	}
	for _, w := range auditors {
		w.want.asked--
		v.countAudited(w, err)
		v.ask(w)
	}
	if len(auditors) > 0 && errors.Is(err, context.DeadlineExceeded) {
		v.s.abandonSilent(v.conn, q.sent) // if this ends the connection, serve calls lost
	}
	if q.op == opRegister && g.state != regConfirmed && len(g.watches) > 0 || len(q.readers) > 0 {
		v.closeUseless(err)
	}
}

// countRead records that one key of a watch was read on this connection.
func (v *watcher) countRead(w *Watch) {
	w.unread--
	v.checkRead(w)
}

// checkRead ends the outage or the join of a watch once all of its keys are read. If not, it asks for them.
func (v *watcher) checkRead(w *Watch) {
	if w.unread > 0 {
		v.ask(w)
		return
	}
	if w.giveUp != nil {
		w.giveUp.Stop()
		w.giveUp = nil
	}
	w.up()
	w.endJoin(nil)
	if w.o.Audit > 0 && w.audit == nil && !w.looking {
		w.audit = time.AfterFunc(w.o.Audit, func() { v.post(func() { v.startAudit(w) }) })
	}
	for other := range v.watches {
		if other.unread > 0 && other.joined == nil {
			return
		}
	}
	v.attempt = 0
}

// startAudit starts an audit of a watch, or reports why it cannot start.
func (v *watcher) startAudit(w *Watch) {
	if _, ok := v.watches[w]; !ok {
		return
	}
	w.audit.Reset(w.o.Audit)
	switch {
	case w.auditing > 0: // the previous audit reports its own outcome
	case v.conn == nil || w.unread > 0:
		w.unaudited(v.trouble)
	default:
		w.auditing, w.auditErr = len(w.keys), nil
		for _, key := range w.sorted() {
			w.want.audits = append(w.want.audits, v.s.routes[key])
		}
		v.ask(w)
	}
}

// countAudited records that the current audit of a watch is finished with one key. err says why the key
// could not be compared; nil = it was compared or removed.
func (v *watcher) countAudited(w *Watch, err error) {
	if w.auditErr == nil {
		w.auditErr = err
	}
	if w.auditing--; w.auditing == 0 && w.auditErr != nil {
		w.unaudited(w.auditErr)
	}
}
