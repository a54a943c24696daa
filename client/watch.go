package client

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultBuffer is how many unconsumed events a Watch keeps by default.
const DefaultBuffer = 65536

// WatchOptions are the options of [Session.Watch].
type WatchOptions struct {
	// Buffer is the maximum number of unconsumed changes; 0 = DefaultBuffer. The states of keys that the watch
	// reads do not count: it reads no more than [Watch.Next] takes.
	Buffer   int
	RetryFor time.Duration // how long to try to reconnect after the connection is lost; 0 = forever

	// Match is a pattern, as for [Scan]. The watch includes the keys that match when it begins. At
	// the interval Rescan it looks for other matching keys; the first event of such a key is `found`.
	// A watch with a pattern may have no keys. Empty = only the keys passed to Watch.
	//
	// A key that only the pattern found leaves the watch once it has been missing for ten seconds and a
	// later search has not listed it. If more than 4,096 keys are missing, the search alone decides. If the
	// key comes back, it is `found` again. After a break, a key that the pattern found has no event if it was
	// missing before the break and still is.
	Match  string
	Rescan time.Duration // 0 = DefaultRescan

	// Audit is the interval between audits. An audit registers and reads every key again, and
	// finds what a working connection hides: that the store restarted while the broker kept
	// running, or that a notification was dropped. A difference is reported when two audits in a
	// row find it. 0 = no audits.
	Audit time.Duration

	// Ready asks for an EventReady after the events of the keys that the watch begins with, also if there
	// are none.
	Ready bool

	forgetAfter time.Duration // for tests; 0 = forgetAfter
}

// A Watch is a stream of changes to some keys. Only one goroutine at a time may consume it, with
// Next or Events.
//
// A Watch reports each change exactly once, in the order of the store, from a key's `initial` or
// `found` event to the end of the watch, except for changes in a `gap`. After a break, a `resync` event
// gives the key's state and says whether the break lost events. The watch does not notice if the store
// is rolled back to exactly the same version.
type Watch struct {
	v *watcher
	o WatchOptions

	mu       sync.Mutex
	keys     map[string]*watchedKey // once the watch has joined, only the watcher adds and removes keys
	ready    bool                   // all keys that the watch begins with have been read
	proven   time.Time              // all changes before this time were announced to the watch; see advance
	connSeq  uint64                 // the connection whose notifications count
	queue    [][]Event              // events after those in batch, in parts of at most partEvents
	refused  map[string]int         // keys that match and cannot be watched, with the last search that listed them
	withheld int                    // events that all keys hold back
	spare    []Event                // memory of the last consumed part, for reuse; nil = none
	err      error
	wake     chan struct{} // wakes the consumer; capacity 1
	outage   bool          // the connection was lost, and not all keys have been read since
	trouble  error         // the newest error of the outage; nil while the watch is up

	stopLooking context.CancelFunc // ends the search for keys

	// Numbers of events in queue and in batch[next:]: changes, and replies to the watch's own requests.
	held, replies atomic.Int64

	// Owned by the consumer.
	batch []Event // the part being consumed
	next  int     // index in batch

	// Owned by the watcher.
	joined   chan error // receives the outcome of the join; nil once it was sent
	deadline time.Time  // of the join; zero = none
	named    []string   // keys that the caller named and that are not in keys yet, in order; see ask
	unread   int        // keys still to be read on this connection
	looking  bool       // the first search for keys has not ended
	want     wanted
	most     int      // the largest len(keys) since keys was made
	alone    []*Watch // the watch; for the keys that no other watch has
	auditing int      // keys that the current audit has not compared yet
	auditErr error    // why the current audit failed; nil = it has not
	audit    *time.Timer
	giveUp   *time.Timer // ends the watch after RetryFor; nil while the watch is up, or if RetryFor is 0
}

// Watch watches keys. It subscribes to notifications, and registers and reads each key. ctx limits
// the time for these requests; Watch returns when all of them have been answered or, so that there may be any
// number of keys, when 8,192 keys have been read, or those of the first page of a pattern. The
// others are read while the caller consumes the events; see WatchOptions.Ready. The first event of each
// key is `initial`.
//
// After its connection is lost, the watch reconnects by itself, unless the broker's reason is
// permanent ([IsPermanent]). If the store then refuses a key, for example because the client is
// no longer authorized, the watch reports an `error` event for that key and continues with its
// other keys. If no key is left, the watch ends, unless it has a pattern. A key that matches the
// pattern but cannot be watched also gets an `error` event.
//
// Watch returns the errors of [Session.Do], wrapped in a *[WatchError] if a request for one key
// failed, a *[ReasonError] if the broker refuses the subscription, and a *[ScanError] if it cannot
// look for the keys that match.
func (s *Session) Watch(ctx context.Context, keys []string, options ...WatchOptions) (*Watch, error) {
	o, err := option(options)
	if err != nil {
		return nil, err
	}
	return retried(ctx, s, Command{}, func() (*Watch, error) { return s.watch(ctx, keys, o) })
}

// watch is like Watch, without Options.RetryFor.
func (s *Session) watch(ctx context.Context, keys []string, o WatchOptions) (*Watch, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	if o.Rescan <= 0 {
		o.Rescan = DefaultRescan
	}
	if len(keys) == 0 && o.Match == "" {
		return nil, invalid("no key to watch")
	}
	w := &Watch{o: o, keys: make(map[string]*watchedKey), wake: make(chan struct{}, 1)}
	w.alone, w.refused = []*Watch{w}, make(map[string]int)
	for _, key := range keys {
		if err := s.checkWatch(key); err != nil {
			return nil, err
		}
	}
	w.named = slices.Clone(keys)
	slices.Sort(w.named)
	w.named = slices.Compact(w.named)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if s.watcher == nil {
		s.watcher = newWatcher(s)
	}
	w.v = s.watcher
	looking, stopLooking := context.WithCancel(s.ctx)
	w.stopLooking = stopLooking
	s.mu.Unlock()
	find := &finder{s: s, w: w}
	if o.Match != "" {
		if err := find.begin(ctx); err != nil {
			w.end(err)
			return nil, err
		}
	}
	joined := make(chan error, 1)
	w.joined = joined
	w.deadline, _ = ctx.Deadline()
	w.v.post(func() { w.v.join(w) })
	defer context.AfterFunc(ctx, func() {
		w.v.post(func() { w.v.endJoin(w, context.Cause(ctx)) })
	})()
	var err error
	select {
	case err = <-joined:
	case <-w.v.done:
		err = ErrClosed
	}
	if err == nil && o.Match != "" {
		err = find.start(looking)
	}
	if err != nil {
		w.end(err)
		return nil, err
	}
	return w, nil
}

// checkWatch returns why a key cannot be watched, or nil.
func (s *Session) checkWatch(key string) error {
	if len(key) > s.longest {
		return invalid("watch %.32q…: the key has %d bytes, and there are notifications only for keys of at most %d", key, len(key), s.longest)
	}
	return keyNotify(key).Check()
}

// sorted returns the names of the keys. Only the watcher may call it.
func (w *Watch) sorted() []string { return slices.Sorted(maps.Keys(w.keys)) }

// Next returns the next event, and waits for it if there is none. After the watch has ended,
// Next returns the remaining events and then the reason, such as [ErrClosed], [ErrOverflow], a
// permanent refusal by the broker, a refusal by the store, or an error because there was no
// connection for WatchOptions.RetryFor. If there is no event, Next also returns when ctx ends, which
// does not end the watch.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	if w.v == nil {
		return Event{}, invalid("the zero Watch has no events; a Watch comes from Session.Watch")
	}
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

// Events iterates over the events: it calls Next until Next returns an error, which is yielded
// last. Breaking out of the loop does not close the watch; Events can be called again.
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

// partEvents is the number of events in a part of the queue. The queue has parts so that it can
// grow without copying, and free the parts that were consumed.
const partEvents = 128

// pop returns the next event, if there is one; ok is false if not. The error says why there will be no
// more events.
func (w *Watch) pop() (e Event, ok bool, err error) {
	if w.next == len(w.batch) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.batch != nil {
			w.spare, w.batch, w.next = w.batch[:0], nil, 0
		}
		if len(w.queue) == 0 {
			return Event{}, false, w.err
		}
		w.batch = w.queue[0]
		w.queue = slices.Delete(w.queue, 0, 1)
	}
	e = w.batch[w.next]
	w.batch[w.next] = Event{}
	w.next++
	switch {
	case !e.isReply():
		w.held.Add(-1)
	case w.replies.Add(-1) == maxReplies/2:
		w.v.post(func() { w.v.ask(w) })
	}
	return e, true, nil
}

// Ready reports whether Next would return immediately. Only the consumer may call it.
func (w *Watch) Ready() bool {
	if w.next < len(w.batch) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0 || w.err != nil
}

// closeTimeout is the longest time that [Watch.Close] takes.
const closeTimeout = 2 * time.Second

// Close ends the watch. It asks the store to stop the notifications of keys that no other watch
// of the session needs. It waits for the replies for at most two seconds, or Options.Timeout if
// that is shorter. An error means that the store may still send notifications; the watch has
// ended anyway.
func (w *Watch) Close() error {
	if w.v == nil {
		return nil
	}
	return w.closeWithin(context.Background())
}

// closeWithin is like Close, but waits until ctx ends at the latest.
func (w *Watch) closeWithin(ctx context.Context) error {
	ctx, cancel := limitTo(ctx, min(closeTimeout, w.v.s.o.Timeout))
	defer cancel()
	return w.close(ctx)
}

// close is like Close, but waits until ctx ends.
func (w *Watch) close(ctx context.Context) error {
	w.end(ErrClosed)
	left := make(chan error, 1)
	w.v.post(func() { w.v.leave(w, func(err error) { left <- err }) })
	select {
	case err := <-left:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.v.done:
		return nil // the registrations ended with the connection
	}
}

// end makes Next return err after the remaining events.
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
	w.stopLooking()
	w.wakeUp()
	w.v.post(func() { w.v.leave(w, nil) })
}

func (w *Watch) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// ended returns why the watch has ended, or nil.
func (w *Watch) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// endJoin passes the outcome of the join to Session.Watch, unless an outcome was passed already.
func (w *Watch) endJoin(err error) {
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

// setConn makes the watch accept the notifications of connection connSeq.
func (w *Watch) setConn(connSeq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connSeq = connSeq
}

// advance records that all changes before t were announced to the watch. The proof
// is a message that the store sent after those notifications: the reply to a request that was
// sent at t, or the notification of a change at t. The time when bytes last arrived proves
// nothing, because later notifications may have been under way. advance requires w.mu.
func (w *Watch) advance(t time.Time) {
	if t.After(w.proven) {
		w.proven = t
	}
}

// down begins an outage because of err. ping is the Conn.LastPing of the lost connection.
func (w *Watch) down(ping time.Time, err error) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connSeq, w.trouble = 0, err
	w.advance(ping)
	if !w.outage {
		w.outage = true
		w.push(Event{Kind: EventDown, Time: time.Now(), Err: err})
	}
	since := w.proven.Truncate(time.Millisecond) // the resolution of versions
	for _, k := range w.keys {
		k.down(since)
	}
}

// up ends an outage, once all keys have been read. It also records that the keys that the watch begins with have been
// read, once all of them are known.
func (w *Watch) up() {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ready && !w.looking {
		w.ready = true
		if w.o.Ready {
			w.push(Event{Kind: EventReady, Time: time.Now()})
		}
	}
	if w.outage {
		w.outage, w.trouble = false, nil
		w.push(Event{Kind: EventUp, Time: time.Now()})
	}
}

// setTrouble records why there is still no connection.
func (w *Watch) setTrouble(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = err
}

// Trouble returns the newest error of the current outage: why the connection was lost, or why
// the last attempt to connect failed. It returns nil if there is no outage. It may be called
// concurrently.
func (w *Watch) Trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble
}

// unaudited queues an event which says that an audit failed because of err.
func (w *Watch) unaudited(err error) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.push(Event{Kind: EventUnaudited, Time: time.Now(), Err: err})
}

// push queues an event for the consumer. The caller must wake the consumer, perhaps after
// several events. It requires w.mu.
func (w *Watch) push(e Event) {
	if w.err != nil {
		return
	}
	switch {
	case e.isReply():
		w.replies.Add(1)
	case w.held.Load() >= int64(w.o.Buffer):
		w.endLocked(ErrOverflow)
		return
	default:
		w.held.Add(1)
	}
	last := len(w.queue) - 1
	if last < 0 || len(w.queue[last]) == partEvents {
		if w.spare == nil {
			w.spare = make([]Event, 0, partEvents)
		}
		w.queue = append(w.queue, w.spare)
		w.spare = nil
		last++
	}
	w.queue[last] = append(w.queue[last], e)
}
