package client

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// A registration is what a watcher knows of one key on the present connection, and who
// wants what of it.
type registration struct {
	key      string
	watches  []*Watch
	asked    answer // whether the store notifies us of the key
	renew    bool   // ask again, for an audit
	readers  []*Watch
	auditors []*Watch
	request  *keyRequest   // in flight; at most one, so that their order is certain
	queued   bool          // in watcher.queue
	stopped  []func(error) // to be called when the key is not registered any more
}

// answer is what is known of a registration at the store.
type answer int

const (
	no answer = iota
	perhaps
	yes
)

// A keyRequest is a request for one key.
type keyRequest struct {
	of                *registration
	kind              requestKind
	command           Command
	readers, auditors []*Watch // that wanted the key read when this was made
	sent              time.Time
	sending           atomic.Pointer[pending] // nil before it is sent
}

type requestKind int

const (
	ask  requestKind = iota // KEYNOTIFY
	read                    // GET
	stop                    // KEYNOTIFY STOP
)

// next returns the next request for the key: first KEYNOTIFY, then a GET for all that want
// one by then, and STOP when nobody watches the key any more; nil if there is nothing to
// do. A GET does not serve a watch that comes after it: what happened in between would be
// lost.
func (g *registration) next() *keyRequest {
	switch {
	case len(g.watches) == 0 && g.asked == no:
		return nil
	case len(g.watches) == 0:
		return g.newRequest(stop, keyNotifyStop(g.key))
	case g.asked != yes || g.renew:
		g.renew = false
		return g.newRequest(ask, keyNotify(g.key))
	case len(g.readers)+len(g.auditors) > 0:
		q := g.newRequest(read, Get(g.key))
		q.readers, q.auditors = g.readers, g.auditors
		g.readers, g.auditors = nil, nil
		return q
	}
	return nil
}

func (g *registration) newRequest(kind requestKind, c Command) *keyRequest {
	return &keyRequest{of: g, kind: kind, command: c}
}

// forget takes a watch from the key. It reports whether an audit of the key was due to it.
func (g *registration) forget(w *Watch) (audited bool) {
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

// reset is for a connection that was lost, and the registration with it.
func (g *registration) reset() {
	g.asked, g.renew, g.queued, g.request = no, false, false, nil
	g.readers, g.auditors = nil, nil
	g.settle(nil)
}

// settle tells those who wait for the end of the registration.
func (g *registration) settle(err error) {
	stopped := g.stopped
	g.stopped = nil
	for _, f := range stopped {
		f(err)
	}
}

// isKeyError reports whether trying again with another connection would only repeat the
// error, for this key.
func isKeyError(err error) bool {
	if _, ok := errors.AsType[*AnswerError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*TooLargeError](err); ok {
		return true
	}
	return isStoreError(err) || isFatal(err)
}

func isNoStore(err error) bool {
	_, ok := errors.AsType[*NoStoreError](err)
	return ok
}

func isStoreError(err error) bool {
	_, ok := errors.AsType[*StoreError](err)
	return ok
}
