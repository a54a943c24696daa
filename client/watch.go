package client

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// DefaultBuffer is how many events a Watch holds for its consumer.
const DefaultBuffer = 65536

// WatchOptions go with Session.Watch.
type WatchOptions struct {
	Buffer   int           // events held for the consumer; 0 = DefaultBuffer
	RetryFor time.Duration // how long to try to connect again; 0 = for ever

	// Audit is the interval at which the watch is renewed and every key compared
	// with what is known of it, which also finds what a living connection hides:
	// a store that was restarted behind the broker, a notification that was
	// dropped. Such a finding is reported when it is met twice. 0 = never.
	Audit time.Duration
}

// A Watch is a stream of changes to some keys. Its consumer is one goroutine
// that calls Next.
//
// It promises: every change between the `initial` event of a key and the end of
// the watch is an event, once, in the order of the store; or it lies in a time
// for which a `gap` is reported. After a break a `resync` says what the key is
// now, with the continuity that could be proven. It does not see a store that is
// rolled back to the very same version.
type Watch struct {
	s  *Session
	o  WatchOptions
	wg sync.WaitGroup

	mu     sync.Mutex
	keys   map[string]*watchedKey
	ready  bool       // the first sync is done
	conn   *mqtt.Conn // that it was last synced on
	queue  []Event
	head   int // of queue
	err    error
	wake   chan struct{} // something changed for the consumer; capacity 1
	ended  chan struct{} // closed when err is set
	outage time.Time     // when the connection was lost; zero while it is up
	audit  time.Time     // when the last but one audit was, or the first sync
}

// watchedKey is what a Watch knows of one key.
type watchedKey struct {
	state
	base   Version  // of the last GET: what is older is known already
	recent []change // the last few, to tell duplicates

	// While a GET is outstanding its key's events are held back.
	holding bool
	held    []Event
	older   int       // how many of held came before the last break
	since   time.Time // of the break that is not yet resolved; zero if there is none

	suspect *state // what an audit found and nothing announced
}

type change struct {
	kind    EventKind
	version Version
}

// Watch subscribes to the notifications, asks for them for each key, and reads
// each key. It returns when all of that is confirmed; the events begin with an
// `initial` for each key. A connection that is lost later is made again, unless
// the broker's reason is a fatal one. Errors are those of [Session.Do], and
// *[ReasonError] for a refused subscription.
func (s *Session) Watch(ctx context.Context, keys []string, o WatchOptions) (*Watch, error) {
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	for _, key := range keys {
		if err := keyNotify(key).Check(); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		return nil, invalid("no key to watch")
	}
	w := &Watch{
		s: s, o: o,
		keys:  make(map[string]*watchedKey, len(keys)),
		wake:  make(chan struct{}, 1),
		ended: make(chan struct{}),
	}
	for _, key := range keys {
		w.keys[key] = &watchedKey{holding: true}
	}
	if err := s.join(ctx, w, keys); err != nil {
		s.leave(w)
		w.end(err)
		return nil, err
	}
	if o.Audit > 0 {
		w.wg.Go(w.auditLoop)
	}
	return w, nil
}

// Next returns the next event, waiting for one if need be. When the watch has
// ended it returns what is left and then why: ErrOverflow, what is fatal about
// the connection, the store's refusal, [ErrClosed], or the end of ctx.
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

// Events returns the events to come: it calls Next until an error, which comes last.
// It may be left and called again; it does not close the watch.
//
//	for e, err := range w.Events(ctx) {
//		if err != nil { … }
//		fmt.Println(e.Kind, e.Key, e.Value)
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

// pop returns the next event if there is one. The error is why there will be none
// any more.
func (w *Watch) pop() (e Event, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head == len(w.queue) {
		return Event{}, false, w.err
	}
	e = w.queue[w.head]
	w.queue[w.head] = Event{}
	w.head++
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
	}
	return e, true, nil
}

// Ready tells whether Next has an event, or the end, without waiting.
func (w *Watch) Ready() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head < len(w.queue) || w.err != nil
}

// isOn tells whether the watch has read its keys on a connection, and is told of what
// becomes of them.
func (w *Watch) isOn(conn *mqtt.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn == conn && w.outage.IsZero() && w.err == nil
}

// Close ends the watch and asks the store, within ctx, to stop notifying of keys
// that nobody else of the session watches. The error says that it could not be
// asked; the watch has ended all the same.
func (w *Watch) Close(ctx context.Context) error {
	w.end(mqtt.ErrClosed)
	w.wg.Wait()
	return w.s.stopNotify(ctx, w.s.leave(w))
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
	close(w.ended)
	w.signal()
}

func (w *Watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// The methods below want w.mu.

// push hands an event to the consumer.
func (w *Watch) push(e Event) {
	if w.err != nil {
		return
	}
	if len(w.queue)-w.head >= w.o.Buffer {
		w.endLocked(ErrOverflow)
		return
	}
	if w.head > 1024 && w.head > len(w.queue)/2 {
		w.queue = slices.Delete(w.queue, 0, w.head)
		w.head = 0
	}
	w.queue = append(w.queue, e)
	w.signal()
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
		if slices.ContainsFunc(k.recent, func(r change) bool { return r.kind == c.kind && r.version.Equal(c.version) }) {
			return
		}
		const remembered = 8
		if len(k.recent) == remembered {
			k.recent = slices.Delete(k.recent, 0, 1)
		}
		k.recent = append(k.recent, c)
	}
	if e.Kind == EventSet || e.Kind == EventDelete {
		k.state = state{e.Kind == EventSet, e.Version}
	}
	w.push(e)
}

// synced ends the holding back: r is the answer to the GET.
func (w *Watch) synced(key string, r GetResult, now time.Time) {
	k := w.keys[key]
	if k == nil || !k.holding {
		return
	}
	value, present := r.Value, r.Found
	found := state{present, r.Version}
	event := Event{Kind: EventInitial, Key: key, Time: now, Version: r.Version, Value: value, HasValue: present}
	if w.ready {
		event.Kind = EventResync
		event.Continuity = k.judge(found, value)
		if event.Continuity != ContinuityProven {
			w.push(Event{Kind: EventGap, Key: key, Time: now, Version: k.version, Continuity: event.Continuity, From: k.since, To: now})
		}
	}
	w.push(event)
	held := k.held[k.older:]
	if present {
		held = held[foldedIn(held, r.Version):]
	}
	k.state, k.base, k.recent = found, r.Version, nil
	k.holding, k.held, k.older, k.since, k.suspect = false, nil, 0, time.Time{}, nil
	for _, e := range held {
		w.take(k, e)
	}
}

// judge is the verdict on a key after a break.
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

// foldedIn returns how many of the held events were before the GET that found a
// value of this version: they come in order, so all up to the last that is not
// newer.
func foldedIn(held []Event, version Version) int {
	for i := len(held) - 1; i >= 0; i-- {
		if e := held[i]; e.Kind == EventSet && !e.Version.IsZero() && e.Version.Compare(version) <= 0 {
			return i + 1
		}
	}
	return 0
}

// broken marks all keys as not watched since the last sign of life.
func (w *Watch) broken(since time.Time, err error) {
	if w.outage.IsZero() {
		w.outage = since
		w.push(Event{Kind: EventDown, Time: time.Now(), Err: err})
	}
	for _, k := range w.keys {
		if k.since.IsZero() {
			k.since = since
		}
		k.holding, k.older, k.suspect = true, len(k.held), nil
	}
}

// notified routes a notification to the watches of its key.
func (s *Session) notified(key string, m mqtt.Message) {
	e := Event{Kind: EventOther, Key: key, Time: time.Now()}
	if text, ok := m.Property(wire.PropTimestamp); ok {
		// One that cannot be read leaves the version unknown and loses no event.
		if v, err := wire.ParseVersion(text); err == nil {
			e.Version = v
		}
	}
	n, err := wire.ParseNotification(m.Payload)
	switch {
	case err != nil:
		e.Word = string(m.Payload)
	case n.Op == wire.OpSet:
		e.Kind, e.Value, e.HasValue = EventSet, n.Value, n.HasValue
	case n.Op == wire.OpDelete:
		e.Kind = EventDelete
	default:
		e.Word, e.Value, e.HasValue = string(n.Op), n.Value, n.HasValue
	}
	s.mu.Lock()
	watches := s.watching.byKey[key]
	s.mu.Unlock()
	for _, w := range watches {
		w.mu.Lock()
		if k := w.keys[key]; k != nil {
			w.take(k, e)
		}
		w.mu.Unlock()
	}
}

func (w *Watch) auditLoop() {
	tick := time.NewTicker(w.o.Audit)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.s.audit(w)
		case <-w.ended:
			return
		}
	}
}

// audited compares what an audit found with what is known of the key.
func (w *Watch) audited(key string, r GetResult, now time.Time) {
	k := w.keys[key]
	if k == nil || k.holding {
		return
	}
	value, present := r.Value, r.Found
	found := state{present, r.Version}
	if k.knows(found) {
		k.suspect = nil
		return
	}
	// The notification may only be late.
	if k.suspect == nil || k.suspect.present != found.present || !k.suspect.version.Equal(found.version) {
		k.suspect = &found
		return
	}
	w.push(Event{Kind: EventGap, Key: key, Time: now, Version: k.version, Continuity: ContinuityLost, From: w.audit, To: now})
	w.push(Event{Kind: EventResync, Key: key, Time: now, Continuity: ContinuityLost, Version: r.Version, Value: value, HasValue: present})
	k.suspect = nil
	k.state, k.base, k.recent = found, r.Version, nil
}

// knows tells whether a state is what the events made of the key, or was.
func (k *watchedKey) knows(found state) bool {
	if k.present == found.present && (!found.present || k.version.IsZero() || k.version.Equal(found.version)) {
		return true
	}
	return slices.ContainsFunc(k.recent, func(c change) bool {
		return (c.kind == EventSet) == found.present && (!found.present || c.version.Equal(found.version))
	})
}
