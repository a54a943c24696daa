package client

import (
	"slices"
	"time"
)

// A watchedKey is what a Watch knows about one key. Watch.mu guards it.
type watchedKey struct {
	state
	base   Version   // the version that the last GET found; notifications of older versions are ignored
	recent []change  // the last few changes, to recognize duplicates and changes during an audit
	proven time.Time // when the last GET that confirmed the state was sent

	// While a GET is outstanding, the events of the key are held back.
	holding bool
	held    []Event
	older   int       // number of events in held that came before the last break
	since   time.Time // when the current break began; zero if there is none

	// For a key that the pattern found, until its GET is answered:
	found     time.Time // start of the last search before the key was found; zero for other keys
	uncounted bool      // Watch.unread does not count the GET

	matched bool      // the pattern found the key, and nobody named it
	gone    time.Time // since when the key is known to be missing; zero if it is not

	suspect *state // a state that an audit found and no notification announced; nil = none
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

// sync handles the answer to a GET for a join, a resync or a key that was found. sent is when
// the GET was sent. sync queues an event with the state of the key, and then the events that were
// held back. counted says whether Watch.unread counts the GET.
func (w *Watch) sync(key string, r GetResult, sent time.Time) (counted bool) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k, now := w.keys[key], time.Now()
	w.advance(sent)
	found := state{r.Found, r.Version}
	if k.matched && w.ready && k.found.IsZero() && !k.present && !r.Found && len(k.held) == 0 {
		// A key of the pattern that was missing before a break, and still is, is nobody's any more.
		counted = !k.uncounted
		k.renew(found, r.Version, sent)
		return counted
	}
	event := Event{Kind: EventInitial, Key: key, Time: now, Version: r.Version, Value: r.Value, HasValue: r.Found}
	counted = !k.uncounted
	switch {
	case !k.found.IsZero():
		event.Kind, event.Continuity, event.From, event.To = EventFound, ContinuityUnknown, k.found, now
	case w.ready:
		event.Kind = EventResync
		event.Continuity = k.continuity(found, r.Value)
		if event.Continuity != ContinuityProven {
			w.push(Event{Kind: EventGap, Key: key, Time: now, Version: k.version, Continuity: event.Continuity, From: k.since, To: now})
		}
	}
	w.push(event)
	held := k.held[k.older:]
	if r.Found {
		held = held[foldedIn(held, r.Version):]
	}
	k.renew(found, r.Version, sent)
	for _, e := range held {
		w.notify(k, e)
	}
	return counted
}

// compare handles the answer to an audit's GET. sent is when the GET was sent.
func (w *Watch) compare(key string, r GetResult, sent time.Time) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k, now := w.keys[key], time.Now()
	if k.holding {
		return
	}
	w.advance(sent)
	found := state{r.Found, r.Version}
	if k.explains(found, sent) {
		k.suspect, k.proven = nil, sent
		return
	}
	// The notification may only be late, so the next audit decides.
	if k.suspect == nil || k.suspect.present != found.present || !k.suspect.version.Equal(found.version) {
		k.suspect = &found
		return
	}
	w.push(Event{Kind: EventGap, Key: key, Time: now, Version: k.version, Continuity: ContinuityLost, From: k.proven, To: now})
	w.push(Event{Kind: EventResync, Key: key, Time: now, Continuity: ContinuityLost, Version: r.Version, Value: r.Value, HasValue: r.Found})
	k.renew(found, r.Version, sent)
}

// renew begins with the state that a GET, sent at the time sent, found.
func (k *watchedKey) renew(found state, base Version, sent time.Time) {
	was := *k
	*k = watchedKey{base: base, proven: sent, matched: was.matched, gone: was.gone}
	k.setState(found, time.Now())
}

// setState records that the key has this state since at, or was seen to have it then.
func (k *watchedKey) setState(s state, at time.Time) {
	k.state = s
	switch {
	case s.present:
		k.gone = time.Time{}
	case k.gone.IsZero():
		k.gone = at
	}
}

// drop stops watching a key because of err. It reports whether Watch.unread counts a GET of the
// key.
func (w *Watch) drop(key string, err error) bool {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keys[key]
	delete(w.keys, key)
	w.push(Event{Kind: EventError, Key: key, Time: time.Now(), Version: k.version, Err: err})
	return k.holding && !k.uncounted
}

// notify handles a notification. It requires w.mu.
func (w *Watch) notify(k *watchedKey, e Event) {
	if k.holding {
		if len(k.held) >= w.o.Buffer {
			w.endLocked(ErrOverflow)
			return
		}
		k.held = append(k.held, e)
		return
	}
	if !e.Version.IsZero() {
		// A deletion may carry the version of the value that it deleted.
		order := e.Version.Compare(k.base)
		if order < 0 || order == 0 && e.Kind == EventSet {
			return
		}
		c := change{e.Kind, e.Version, e.Time}
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
		k.setState(state{e.Kind == EventSet, e.Version}, e.Time)
		k.suspect = nil
	}
	w.push(e)
}

// continuity returns what can be proven about a break, from the state and the value that a GET found
// after it.
func (k *watchedKey) continuity(found state, value []byte) Continuity {
	announced := slices.ContainsFunc(k.held, func(e Event) bool {
		if !found.present {
			return e.Kind == EventDelete
		}
		return e.Kind == EventSet && (e.Version.Equal(found.version) || e.Version.IsZero() && string(e.Value) == string(value))
	})
	for _, e := range k.held[:k.older] {
		if found.present && !found.version.IsZero() && e.Kind == EventSet && e.Version.Compare(found.version) > 0 {
			return ContinuityLost // the key had a newer version before
		}
	}
	return continuityOf(k.state, found, announced)
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
	for _, c := range slices.Backward(k.recent) {
		if is(state{c.kind == EventSet, c.version}) {
			return true
		}
		if !c.at.After(sent) {
			break
		}
	}
	return false
}
