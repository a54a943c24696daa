package client

import (
	"errors"
	"time"
)

// EventKind is the kind of an [Event].
type EventKind string

const (
	EventInitial   EventKind = "initial"   // what the key was when the watch began
	EventFound     EventKind = "found"     // what the key was when WatchOptions.Match had found it: what happened before is not known
	EventSet       EventKind = "set"       // the key was written
	EventDelete    EventKind = "delete"    // the key was deleted, or expired (protocol.md 2.6)
	EventOther     EventKind = "other"     // a notification with an unknown word
	EventGap       EventKind = "gap"       // events are missing, or may be
	EventResync    EventKind = "resync"    // what the key is after a break
	EventError     EventKind = "error"     // the key is no longer watched; see Err
	EventDown      EventKind = "down"      // the connection was lost; no key
	EventUp        EventKind = "up"        // all keys are watched again; no key
	EventUnaudited EventKind = "unaudited" // an audit could not be made and proves nothing; see Err; no key
)

// Continuity says whether events were lost in a break.
type Continuity string

const (
	ContinuityProven  Continuity = "proven"  // the key has the same version: nothing happened
	ContinuityLost    Continuity = "lost"    // at least one event was missed
	ContinuityUnknown Continuity = "unknown" // that cannot be known
)

// An Event is one element of a [Watch].
type Event struct {
	Kind    EventKind
	Key     string
	Time    time.Time // when the client received it, by the local clock
	Version Version   // of a gap and an error: the last known one; zero if there is none

	Value    []byte
	HasValue bool   // false for a deletion, a missing key, and a set whose notification had no value
	Word     string // of an other event

	Continuity Continuity // of a resync, a gap and a found event
	From, To   time.Time  // of a gap: events between them may be missing, and none before From is; of a found event: the key came between them
	Err        error      // of a down, an error and an unaudited event: the reason
}

// changed returns when the change happened that a notification announces, or a time before: by the
// version, but not after the arrival, because the store's clock or a writer's may be ahead. It
// returns the zero time for a notification without a version.
func (e Event) changed() time.Time {
	if t := e.Version.Time(); e.Version.IsZero() || t.Before(e.Time) {
		return t
	}
	return e.Time
}

// ErrOverflow ends a watch whose consumer was too slow.
var ErrOverflow = errors.New("the events are not consumed as fast as they come, and the buffer is full")
