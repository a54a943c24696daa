package client

import (
	"bytes"
	"context"
	"encoding/hex"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// DefaultBuffer is how many events a Watch holds for its consumer.
const DefaultBuffer = 65536

// WatchOptions are the options of [Session.Watch].
type WatchOptions struct {
	Buffer   int           // events held for the consumer; 0 = DefaultBuffer
	RetryFor time.Duration // after a loss, how long to try to come back; 0 = for ever

	// Audit is the interval at which to register and read every key again. That also
	// finds what a living connection hides: a store that restarted behind the broker, or
	// a notification that was dropped. A difference is reported when two audits in a row
	// find it. 0 = never.
	Audit time.Duration
}

// A Watch is a stream of changes to some keys. One goroutine consumes it, with Next or
// Events.
//
// It promises: every change between the `initial` event of a key and the end of the watch
// is an event, once, in the order of the store; or it lies in a time for which there is a
// `gap`. After a break a `resync` says what the key is now, and what is proven about the
// time before. A store that is rolled back to the very same version goes unnoticed.
type Watch struct {
	v *watcher
	o WatchOptions

	mu      sync.Mutex
	keys    map[string]*watchedKey
	ready   bool      // all keys have been read once
	feed    uint64    // of the connection whose notifications count
	queue   [][]Event // not yet taken by the consumer; each part has room for partEvents
	spare   [][]Event // empty parts, at most keptParts
	err     error
	wake    chan struct{} // something changed for the consumer; capacity 1
	outage  time.Time     // when the connection was lost; zero while the watch is up
	trouble error         // the newest error of the outage; nil while the watch is up

	held atomic.Int64 // events in queue and in taken

	// Owned by the consumer, which takes one part of the queue after the other.
	taken []Event
	next  int // of taken

	// Owned by the watcher.
	names    []string   // the keys
	joined   chan error // gets the outcome of the join; nil once it has
	deadline time.Time  // of the join; zero = none
	unread   int        // keys to be read on this connection
	auditing int        // keys of the present audit that are not compared yet
	auditErr error      // why the present audit fails
	audit    *time.Timer
	giveUp   *time.Timer // nil while the watch is up, or there is no RetryFor
}

// watchedKey is what a Watch knows of one key.
type watchedKey struct {
	state
	base   Version   // of the last GET; older versions are known already
	recent []change  // the last few, to recognize duplicates; a ring once it is full
	oldest int       // of recent, once it is full
	proven time.Time // when the last GET was sent that found what was known

	// While a GET is outstanding the events of its key are held back.
	holding bool
	held    []Event
	older   int       // how many of held came before the last break
	since   time.Time // beginning of the unresolved break; zero if there is none

	suspect *state // what an audit found and no notification announced
}

type change struct {
	kind    EventKind
	version Version
}

// Watch watches keys. It subscribes to notifications, registers for each key, reads each
// key, and returns when all of that is confirmed, within ctx. The events begin with an
// `initial` for each key.
//
// After a connection was lost the watch comes back by itself, unless the broker's reason
// is permanent ([IsPermanent]). If the store then refuses a key, for example because the
// client is no longer authorized, that key ends with an `error` event and the others go on;
// a refusal of the last key ends the watch.
//
// It returns the errors of [Session.Do], and a *[ReasonError] for a refused subscription.
func (s *Session) Watch(ctx context.Context, keys []string, o WatchOptions) (*Watch, error) {
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	if len(keys) == 0 {
		return nil, invalid("no key to watch")
	}
	w := &Watch{o: o, keys: make(map[string]*watchedKey, len(keys)), wake: make(chan struct{}, 1)}
	longest := wire.MaxNotifyKey(s.o.ClientID)
	for _, key := range keys {
		if err := keyNotify(key).Check(); err != nil {
			return nil, err
		}
		if len(key) > longest {
			return nil, invalid("watch %.32q…: the key has %d bytes, and there are notifications only for keys of at most %d", key, len(key), longest)
		}
		if w.keys[key] == nil {
			w.keys[key] = &watchedKey{holding: true}
			w.names = append(w.names, key)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	if s.life.Err() != nil {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if s.watcher == nil {
		s.watcher = newWatcher(s)
	}
	w.v = s.watcher
	s.mu.Unlock()
	joined := make(chan error, 1)
	w.joined = joined
	w.deadline, _ = ctx.Deadline()
	w.v.post(func() { w.v.join(w) })
	defer context.AfterFunc(ctx, func() {
		w.v.post(func() { w.v.abandon(w, context.Cause(ctx)) })
	})()
	var err error
	select {
	case err = <-joined:
	case <-w.v.over:
		err = ErrClosed
	}
	if err != nil {
		w.end(err)
		return nil, err
	}
	return w, nil
}

// Next returns the next event, and waits for one if there is none. When the watch has
// ended it returns the events that are left and then the reason: [ErrClosed],
// [ErrOverflow], a permanent reason of the broker, a refusal of the store, or that there
// was no connection for WatchOptions.RetryFor. It also ends with ctx, which does not end
// the watch.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := w.pop(); ok || err != nil {
			return e, err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

// Events iterates over the events: it calls Next until an error, which comes last. To
// break out of the loop does not close the watch; Events can be called again.
//
//	for e, err := range w.Events(ctx) {
//		if err != nil { … }
//		fmt.Printf("%s %s %q\n", e.Kind, e.Key, e.Value)
//	}
func (w *Watch) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := w.Next(ctx)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// The queue consists of parts, so that it can grow without being copied.
const (
	partEvents = 128
	keptParts  = 8
)

// pop returns the next event if there is one. The error is why there will be no more.
func (w *Watch) pop() (e Event, ok bool, err error) {
	if w.next == len(w.taken) {
		w.mu.Lock()
		if cap(w.taken) > 0 && len(w.spare) < keptParts {
			w.spare = append(w.spare, w.taken[:0])
		}
		w.taken, w.next = nil, 0
		if len(w.queue) == 0 {
			err = w.err
			w.mu.Unlock()
			return Event{}, false, err
		}
		w.taken = w.queue[0]
		w.queue = slices.Delete(w.queue, 0, 1)
		w.mu.Unlock()
	}
	e = w.taken[w.next]
	w.taken[w.next] = Event{}
	w.next++
	w.held.Add(-1)
	return e, true, nil
}

// Ready reports whether Next has an event, or the end, without waiting. Like Next, it is for
// the consumer only.
func (w *Watch) Ready() bool {
	if w.next < len(w.taken) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0 || w.err != nil
}

// Close ends the watch. It asks the store to stop the notifications of keys that no other
// watch of the session needs, and waits for that within ctx. The error means that it could
// not be confirmed; the watch has ended all the same.
func (w *Watch) Close(ctx context.Context) error {
	w.end(ErrClosed)
	left := make(chan error, 1)
	w.v.post(func() { w.v.leave(w, func(err error) { left <- err }) })
	select {
	case err := <-left:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.v.over:
		return nil // the registrations ended with the connection
	}
}

// end makes Next return err after the events that are left.
func (w *Watch) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked(err)
}

func (w *Watch) endLocked(err error) {
	if w.err != nil {
		return
	}
	w.err = err
	w.wakeUp()
	w.v.post(func() { w.v.leave(w, nil) })
}

// wakeUp wakes the consumer.
func (w *Watch) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// The watcher calls the methods below.

// answer ends the wait for the join, if there is one.
func (w *Watch) answer(err error) {
	if w.joined != nil {
		w.joined <- err
		w.joined = nil
	}
}

func (w *Watch) stopTimers() {
	if w.audit != nil {
		w.audit.Stop()
	}
	if w.giveUp != nil {
		w.giveUp.Stop()
		w.giveUp = nil
	}
}

// attach lets the notifications of a connection count.
func (w *Watch) attach(feed uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed = feed
}

// broken begins an outage: nothing is known since the last sign of life.
func (w *Watch) broken(since time.Time, err error) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed, w.trouble = 0, err
	if w.outage.IsZero() {
		w.outage = since
		w.push(Event{Kind: EventDown, Time: time.Now(), Err: err})
	}
	for _, k := range w.keys {
		if k.since.IsZero() {
			k.since = since
			if k.suspect != nil {
				k.since = k.proven
			}
		}
		k.holding, k.older, k.suspect = true, len(k.held), nil
	}
}

// up ends an outage, or the join: all keys have been read.
func (w *Watch) up() {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = true
	if !w.outage.IsZero() {
		w.outage, w.trouble = time.Time{}, nil
		w.push(Event{Kind: EventUp, Time: time.Now()})
	}
}

// stillAway notes why there is still no connection.
func (w *Watch) stillAway(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = err
}

// Trouble returns the newest error of the outage that the watch is in: why the connection was
// lost, or why the last attempt to connect failed. It is nil while there is no outage. It may be
// called concurrently.
func (w *Watch) Trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble
}

// drop ends what is watched of a key. It reports whether the key was still to be read.
func (w *Watch) drop(key string, err error) bool {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keys[key]
	delete(w.keys, key)
	w.push(Event{Kind: EventError, Key: key, Time: time.Now(), Version: k.version, Err: err})
	return k.holding
}

// unaudited says why an audit could not be made.
func (w *Watch) unaudited(err error) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.push(Event{Kind: EventUnaudited, Time: time.Now(), Err: err})
}

// sync takes the answer to the GET of a join or a resync, which was sent at a time, and
// ends the holding back.
func (w *Watch) sync(key string, r GetResult, sent time.Time) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k, now := w.keys[key], time.Now()
	found := state{r.Found, r.Version}
	event := Event{Kind: EventInitial, Key: key, Time: now, Version: r.Version, Value: r.Value, HasValue: r.Found}
	if w.ready {
		event.Kind = EventResync
		event.Continuity = k.judge(found, r.Value)
		if event.Continuity != ContinuityProven {
			w.push(Event{Kind: EventGap, Key: key, Time: now, Version: k.version, Continuity: event.Continuity, From: k.since, To: now})
		}
	}
	w.push(event)
	held := k.held[k.older:]
	if r.Found {
		held = held[foldedIn(held, r.Version):]
	}
	*k = watchedKey{state: found, base: r.Version, proven: sent}
	for _, e := range held {
		w.take(k, e)
	}
}

// compare takes the answer to the GET of an audit, which was sent at a time.
func (w *Watch) compare(key string, r GetResult, sent time.Time) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k, now := w.keys[key], time.Now()
	if k.holding {
		return
	}
	found := state{r.Found, r.Version}
	if k.knows(found) {
		k.suspect, k.proven = nil, sent
		return
	}
	// The notification may only be late.
	if k.suspect == nil || k.suspect.present != found.present || !k.suspect.version.Equal(found.version) {
		k.suspect = &found
		return
	}
	w.push(Event{Kind: EventGap, Key: key, Time: now, Version: k.version, Continuity: ContinuityLost, From: k.proven, To: now})
	w.push(Event{Kind: EventResync, Key: key, Time: now, Continuity: ContinuityLost, Version: r.Version, Value: r.Value, HasValue: r.Found})
	*k = watchedKey{state: found, base: r.Version, proven: sent}
}

// The caller of the methods below holds w.mu.

// push hands an event to the consumer. The caller wakes it, perhaps after several.
func (w *Watch) push(e Event) {
	if w.err != nil {
		return
	}
	if w.held.Load() >= int64(w.o.Buffer) {
		w.endLocked(ErrOverflow)
		return
	}
	w.held.Add(1)
	last := len(w.queue) - 1
	if last < 0 || len(w.queue[last]) == partEvents {
		w.queue = append(w.queue, w.newPart())
		last++
	}
	w.queue[last] = append(w.queue[last], e)
}

func (w *Watch) newPart() []Event {
	last := len(w.spare) - 1
	if last < 0 {
		return make([]Event, 0, partEvents)
	}
	part := w.spare[last]
	w.spare = w.spare[:last]
	return part
}

// take handles a notification.
func (w *Watch) take(k *watchedKey, e Event) {
	if k.holding {
		if len(k.held) >= w.o.Buffer {
			w.endLocked(ErrOverflow)
			return
		}
		k.held = append(k.held, e)
		return
	}
	if !e.Version.IsZero() {
		// A deletion may carry the version of what it deleted.
		order := e.Version.Compare(k.base)
		if order < 0 || order == 0 && e.Kind == EventSet {
			return
		}
		c := change{e.Kind, e.Version}
		if slices.ContainsFunc(k.recent, func(r change) bool { return r.version.Equal(c.version) && r.kind == c.kind }) {
			return
		}
		const remembered = 8
		if len(k.recent) < remembered {
			k.recent = append(k.recent, c)
		} else {
			k.recent[k.oldest] = c
			k.oldest = (k.oldest + 1) % remembered
		}
	}
	if e.Kind == EventSet || e.Kind == EventDelete {
		k.state = state{e.Kind == EventSet, e.Version}
	}
	w.push(e)
}

// judge returns the continuity of a key after a break.
func (k *watchedKey) judge(found state, value []byte) Continuity {
	announced := slices.ContainsFunc(k.held, func(e Event) bool {
		if !found.present {
			return e.Kind == EventDelete
		}
		return e.Kind == EventSet && (e.Version.Equal(found.version) || e.Version.IsZero() && string(e.Value) == string(value))
	})
	for _, e := range k.held[:k.older] {
		if found.present && e.Kind == EventSet && e.Version.Compare(found.version) > 0 {
			return ContinuityLost // it was newer once
		}
	}
	return verdict(k.state, found, announced)
}

// foldedIn returns how many of the held events happened before the GET that found a value
// with this version: events come in order, so these are all up to the last one that is not
// newer.
func foldedIn(held []Event, version Version) int {
	for i := len(held) - 1; i >= 0; i-- {
		if e := held[i]; e.Kind == EventSet && !e.Version.IsZero() && e.Version.Compare(version) <= 0 {
			return i + 1
		}
	}
	return 0
}

// knows reports whether a state is the one that the events led to, or was.
func (k *watchedKey) knows(found state) bool {
	if k.present == found.present && (!found.present || k.version.IsZero() || k.version.Equal(found.version)) {
		return true
	}
	return slices.ContainsFunc(k.recent, func(c change) bool {
		return (c.kind == EventSet) == found.present && (!found.present || c.version.Equal(found.version))
	})
}

// A route is where the notifications of a key go.
type route struct {
	key     string
	watches []*Watch // never changed
}

// notifiedKey appends the key in the topic of a notification for this client; ok is false
// for any other topic.
func (s *Session) notifiedKey(dst, topic []byte) (key []byte, ok bool) {
	digits, ok := bytes.CutPrefix(topic, s.notifyTopic)
	if !ok {
		// Hexadecimal digits may be of either case.
		id, key, ok := wire.ParseNotifyTopic(string(topic))
		return append(dst, key...), ok && id == s.o.ClientID
	}
	key, err := hex.AppendDecode(dst, digits)
	return key, err == nil
}

// notice passes a notification on to the watches of its key.
func (r *receiver) notice(key []byte, m *mqtt.Publication) {
	if m.Retained {
		return // the store's are not: somebody else has left it with the broker
	}
	r.s.mu.Lock()
	to := r.s.routes[string(key)]
	r.s.mu.Unlock()
	if len(to.watches) > 0 {
		r.tell(to.watches, r.newEvent(to.key, m))
	}
}

// tell passes an event on to the watches of its key.
func (r *receiver) tell(watches []*Watch, e Event) {
	for _, w := range watches {
		w.mu.Lock()
		if k := w.keys[e.Key]; k != nil && w.feed == r.feed {
			w.take(k, e)
		}
		w.mu.Unlock()
		if !slices.Contains(r.notified, w) {
			r.notified = append(r.notified, w)
		}
	}
}

// newEvent reads a notification. The event shares no memory with m.
func (r *receiver) newEvent(key string, m *mqtt.Publication) Event {
	e := Event{Kind: EventOther, Key: key, Time: r.at}
	if text, ok := m.Property(wire.PropTimestamp); ok {
		// If it cannot be read, the version is unknown, and the event still counts.
		if v, err := r.parseVersion(text); err == nil {
			e.Version = v
		}
	}
	n, err := wire.ParseNotification(m.Payload)
	switch {
	case err != nil:
		e.Word = string(m.Payload)
	case n.Op == wire.OpSet:
		e.Kind = EventSet
	case n.Op == wire.OpDelete:
		e.Kind = EventDelete
	default:
		e.Word = string(n.Op)
	}
	if e.Kind != EventDelete && n.HasValue {
		e.Value, e.HasValue = append(make([]byte, 0, len(n.Value)), n.Value...), true
	}
	return e
}
