package client

import (
	"math"
	"slices"
	"time"
)

// A watchedKey is what a Watch knows about one key. Watch.mu guards it. A watch may have millions of them, so what
// most of them do not need is allocated when it is needed.
type watchedKey struct {
	state
	proven  time.Time // when the last GET that confirmed the state was sent; zero if none was answered
	matched bool      // the pattern found the key, and nobody named it
	listed  int       // the last search that listed the key
	pending *pending  // while a GET is outstanding; nil otherwise
	heard   *heard    // nil = no notification has come since the last GET, and the key is present
}

// A pending holds the events of a key that are held back while a GET is outstanding.
type pending struct {
	held  []Event
	older int       // number of events in held that came before the last break
	since time.Time // when the current break began; zero if there is none

	// For a key that the pattern found, until its GET is answered:
	found     time.Time // start of the last search before the key was found; zero for other keys
	uncounted bool      // Watch.unread does not count the GET
}

// A heard is what a watchedKey knows from notifications.
type heard struct {
	base    Version   // the version that the last GET found; notifications of older versions are ignored
	recent  []change  // the last few changes, to recognize duplicates and changes during an audit
	gone    time.Time // since when the key is known to be missing; zero if it is not
	suspect *state    // a state that an audit found and no notification announced; nil = none
}

// news returns what is known from notifications.
func (k *watchedKey) news() *heard {
	if k.heard == nil {
		k.heard = &heard{base: k.version}
	}
	return k.heard
}

// down begins a break, in which all changes before since were announced.
func (k *watchedKey) down(since time.Time) {
	if k.heard != nil && k.heard.suspect != nil {
		since = k.proven
		k.heard.suspect = nil
	}
	if k.pending == nil {
		k.pending = &pending{}
	}
	p := k.pending
	if p.since.IsZero() {
		p.since = since
	}
	p.older, p.uncounted = len(p.held), false
}

type change struct {
	kind    EventKind
	version Version
	at      time.Time // when the notification arrived
}

// continuityOf compares before, the last known state of a key, with now, the state that a GET found
// after a break. announced says whether a notification announced the state that the GET found.
func continuityOf(before, now state, announced bool) Continuity {
	switch {
	case !before.present && !now.present:
		return ContinuityUnknown
	case before.present && now.present && !before.version.IsZero() && before.version.Equal(now.version):
		return ContinuityProven
	case now.present && !now.version.IsZero() && now.version.Compare(before.version) < 0:
		return ContinuityLost // the store was restored from an older state
	case announced:
		return ContinuityUnknown
	case now.present && (before.version.IsZero() && before.present || now.version.IsZero()):
		return ContinuityUnknown // the store sent no version
	}
	return ContinuityLost
}

// A state says whether a key is present, and at which version.
type state struct {
	present bool
	version Version // of the value, or of the deletion; zero if not known
}

// sync handles the reply to a GET for a join, a resync or a key that was found. sent is when
// the GET was sent. sync queues an event with the state of the key, and then the events that were
// held back. counted says whether Watch.unread counts the GET.
func (w *Watch) sync(key string, r GetResult, sent time.Time) (counted bool) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k, now := w.keys[key], time.Now()
	w.advance(sent)
	found := state{r.Found, r.Version}
	p := k.pending
	if p == nil {
		p = &pending{} // the reply to a GET that nothing waits for
	}
	again := !k.proven.IsZero() // the key was read on an earlier connection
	counted = !p.uncounted
	if k.matched && again && !k.present && !r.Found && len(p.held) == 0 {
		// A key of the pattern that was missing before a break and still is has no event to report.
		k.renew(found, sent)
		return counted
	}
	event := Event{Kind: EventInitial, Key: key, Time: now, Version: r.Version, Value: r.Value, HasValue: r.Found}
	switch {
	case !p.found.IsZero():
		event.Kind, event.Continuity, event.From, event.To = EventFound, ContinuityUnknown, p.found, now
	case again:
		event.Kind = EventResync
		event.Continuity = p.continuity(k.state, found, r.Value)
		if event.Continuity != ContinuityProven {
			w.push(Event{Kind: EventGap, Key: key, Time: now, Version: k.version, Continuity: event.Continuity, From: p.since, To: now})
		}
	}
	w.push(event)
	held := p.held[p.older:]
	w.withheld -= len(p.held)
	if r.Found {
		held = held[foldedIn(held, r.Version):]
	}
	k.renew(found, sent)
	for _, e := range held {
		w.notify(k, e)
	}
	return counted
}

// compare handles the reply to an audit's GET. sent is when the GET was sent.
func (w *Watch) compare(key string, r GetResult, sent time.Time) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k, now := w.keys[key], time.Now()
	if k.pending != nil {
		return
	}
	w.advance(sent)
	found := state{r.Found, r.Version}
	if k.explains(found, sent) {
		k.proven = sent
		if k.heard != nil {
			k.heard.suspect = nil
		}
		return
	}
	news := k.news()
	// The notification may only be late, so the next audit decides.
	if last := news.suspect; last == nil || last.present != found.present || !last.version.Equal(found.version) {
		news.suspect = &found
		return
	}
	w.push(Event{Kind: EventGap, Key: key, Time: now, Version: k.version, Continuity: ContinuityLost, From: k.proven, To: now})
	w.push(Event{Kind: EventResync, Key: key, Time: now, Continuity: ContinuityLost, Version: r.Version, Value: r.Value, HasValue: r.Found})
	k.renew(found, sent)
}

// renew begins with the state that a GET, sent at the time sent, found.
func (k *watchedKey) renew(found state, sent time.Time) {
	was := *k
	*k = watchedKey{state: found, proven: sent, matched: was.matched, listed: was.listed}
	if !found.present {
		if k.news().gone = time.Now(); was.heard != nil && !was.heard.gone.IsZero() {
			k.heard.gone = was.heard.gone
		}
	}
}

// drop stops watching a key because of err. It reports whether Watch.unread counts a GET of the
// key.
func (w *Watch) drop(key string, err error) bool {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keys[key]
	if k == nil {
		return false
	}
	delete(w.keys, key)
	if w.o.Match != "" {
		if w.refused[key] = k.listed; !k.matched {
			w.refused[key] = math.MaxInt // named: no search finds it
		}
	}
	w.push(Event{Kind: EventError, Key: key, Time: time.Now(), Version: k.version, Err: err})
	if k.pending == nil {
		return false
	}
	w.withheld -= len(k.pending.held)
	return !k.pending.uncounted
}

// notify handles a notification. It requires w.mu.
func (w *Watch) notify(k *watchedKey, e Event) {
	if p := k.pending; p != nil {
		if w.withheld >= w.o.Buffer {
			w.endLocked(ErrOverflow)
			return
		}
		w.withheld++
		p.held = append(p.held, e)
		return
	}
	news := k.news()
	if !e.Version.IsZero() {
		// A deletion may carry the version of the value that it deleted.
		order := e.Version.Compare(news.base)
		if order < 0 || order == 0 && e.Kind == EventSet {
			return
		}
		c := change{e.Kind, e.Version, e.Time}
		if slices.ContainsFunc(news.recent, func(r change) bool { return r.kind == c.kind && r.version.Equal(c.version) }) {
			return
		}
		const remembered = 8
		if len(news.recent) == remembered {
			news.recent = slices.Delete(news.recent, 0, 1)
		}
		news.recent = append(news.recent, c)
	}
	if e.Kind == EventSet || e.Kind == EventDelete {
		k.state, news.suspect = state{e.Kind == EventSet, e.Version}, nil
		if k.present {
			news.gone = time.Time{}
		} else if news.gone.IsZero() {
			news.gone = e.Time
		}
	}
	w.push(e)
}

// continuity returns what can be proven about a break, from the last known state before, and the state and the value
// that a GET found after it.
func (p *pending) continuity(before, found state, value []byte) Continuity {
	announced := slices.ContainsFunc(p.held, func(e Event) bool {
		if !found.present {
			return e.Kind == EventDelete
		}
		return e.Kind == EventSet && (e.Version.Equal(found.version) || e.Version.IsZero() && string(e.Value) == string(value))
	})
	for _, e := range p.held[:p.older] {
		if found.present && !found.version.IsZero() && e.Kind == EventSet && e.Version.Compare(found.version) > 0 {
			return ContinuityLost // the key had a newer version before
		}
	}
	return continuityOf(before, found, announced)
}

// foldedIn returns how many of the held events happened before the GET that found a value with
// this version. Events come in order, so these are all events up to the last SET whose version is
// not newer.
func foldedIn(held []Event, version Version) int {
	for i := len(held) - 1; i >= 0; i-- {
		if e := held[i]; e.Kind == EventSet && !e.Version.IsZero() && e.Version.Compare(version) <= 0 {
			return i + 1
		}
	}
	return 0
}

// explains reports whether the key had this state, according to its events, when an audit's GET was sent
// or later. An earlier state explains nothing: if the key has it again, a notification is missing.
func (k *watchedKey) explains(found state, sent time.Time) bool {
	is := func(s state) bool {
		return s.present == found.present && (!found.present || s.version.IsZero() || s.version.Equal(found.version))
	}
	if is(k.state) {
		return true
	}
	if k.heard == nil {
		return false
	}
	for _, c := range slices.Backward(k.heard.recent) {
		if is(state{c.kind == EventSet, c.version}) {
			return true
		}
		if !c.at.After(sent) {
			break
		}
	}
	return false
}
