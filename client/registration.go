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
	key      string
	watches  []*Watch
	state    regState
	renew    bool // register again, for an audit
	readers  []*Watch
	auditors []*Watch
	request  *keyRequest   // the request in flight; at most one, so that requests keep their order
	queued   bool          // in watcher.queue
	stopped  []func(error) // called when the registration has ended
}

// regState says whether the key is registered at the store, as far as the watcher knows.
type regState int

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

	// A reply can be lost, so a request is sent again if there is no answer. All copies mean the same, and
	// the first answer counts.
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
	case len(g.readers)+len(g.auditors) > 0:
		q := &keyRequest{of: g, op: opRead, command: Get(g.key), readers: g.readers, auditors: g.auditors}
		g.readers, g.auditors = nil, nil
		return q
	}
	return nil
}

// remove removes a watch from the key. It reports whether the watch was waiting for an audit of
// the key.
func (g *registration) remove(w *Watch) (audited bool) {
	is := func(other *Watch) bool { return other == w }
	audited = slices.ContainsFunc(g.auditors, is)
	if q := g.request; q != nil {
		audited = audited || slices.ContainsFunc(q.auditors, is)
		q.readers, q.auditors = slices.DeleteFunc(q.readers, is), slices.DeleteFunc(q.auditors, is)
	}
	g.watches = slices.DeleteFunc(g.watches, is)
	g.readers = slices.DeleteFunc(g.readers, is)
	g.auditors = slices.DeleteFunc(g.auditors, is)
	return audited
}

// reset clears a registration whose connection was lost.
func (g *registration) reset() {
	g.state, g.renew, g.queued, g.request = regNone, false, false, nil
	g.readers, g.auditors = nil, nil
	g.notifyStopped(nil)
}

// notifyStopped calls each function in g.stopped once. err is nil if the registration has certainly
// ended.
func (g *registration) notifyStopped(err error) {
	stopped := g.stopped
	g.stopped = nil
	for _, f := range stopped {
		f(err)
	}
}

// maxKeyRequests is the maximum number of a watcher's requests in flight.
const maxKeyRequests = 256

// wantRead queues a GET of a key for a watch.
func (v *watcher) wantRead(g *registration, w *Watch) {
	g.readers = append(g.readers, w)
	v.enqueue(g)
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
			continue // the answer or the next connection enqueues g again
		}
		if q := g.next(); q != nil {
			g.request = q
			v.awaiting[q] = struct{}{}
			q.pause = resendPause
			v.queueCopy(q)
		} else if len(g.watches) == 0 && v.keys[g.key] == g {
			delete(v.keys, g.key)
			v.shrinkKeys()
			g.notifyStopped(nil)
		}
	}
}

// shrinkKeys gives up memory once most keys are no longer watched.
func (v *watcher) shrinkKeys() {
	if len(v.keys) >= v.most/4 {
		return
	}
	v.shed = v.shed || v.most > manyKeys
	v.keys = shrunk(v.keys)
	v.most = len(v.keys)
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

// resendLate sends requests again that have had no answer for a while.
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
			if w.sync(g.key, own(), q.sent) {
				v.countRead(w)
			}
		}
		for _, w := range q.auditors {
			w.compare(g.key, own(), q.sent)
			v.countAudited(w, nil)
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
	if isA[*AnswerError](err) || isA[*TooLargeError](err) || isA[*StoreError](err) || IsPermanent(err) {
		if isA[*StoreError](err) && q.op == opRegister {
			g.state = regNone
		}
		for _, w := range slices.Clone(g.watches) {
			if w.o.Match == "" && (w.joined != nil || len(w.keys) == 1) {
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
	if q.op == opRegister {
		auditors, g.auditors = g.auditors, nil
	}
	for _, w := range auditors {
		v.countAudited(w, err)
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

// checkRead ends the outage or the join of a watch once all of its keys are read.
func (v *watcher) checkRead(w *Watch) {
	if w.unread > 0 {
		return
	}
	if w.giveUp != nil {
		w.giveUp.Stop()
		w.giveUp = nil
	}
	w.up()
	if w.joined != nil {
		if w.o.Audit > 0 {
			w.audit = time.AfterFunc(w.o.Audit, func() { v.post(func() { v.startAudit(w) }) })
		}
		w.answerJoin(nil)
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
			g := v.keys[key]
			g.auditors, g.renew = append(g.auditors, w), true
			v.enqueue(g)
		}
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
