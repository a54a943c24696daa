package client

import (
	"errors"
	"time"
)

// EventKind says what an Event tells.
type EventKind string

const (
	EventInitial EventKind = "initial" // what the key was when the watch began
	EventSet     EventKind = "set"     // the key was written
	EventDelete  EventKind = "delete"  // the key was deleted, or ran out (protocol.md 2.6)
	EventOther   EventKind = "other"   // a notification with a word that is not known
	EventGap     EventKind = "gap"     // events are missing, or may be
	EventResync  EventKind = "resync"  // what the key is after a break
	EventDown    EventKind = "down"    // the connection was lost; no key
	EventUp      EventKind = "up"      // all keys are watched again; no key
)

// Continuity says whether a break cost events.
type Continuity string

const (
	ContinuityProven  Continuity = "proven"  // the key has the version it had: nothing happened
	ContinuityLost    Continuity = "lost"    // at least one event was missed
	ContinuityUnknown Continuity = "unknown" // it cannot be told
)

// An Event is what a Watch has to tell.
type Event struct {
	Kind    EventKind
	Key     string
	Time    time.Time // when it was known here
	Version Version   // of a gap: the last that was known; zero if there is none

	Value    []byte
	HasValue bool // false for a deletion, a missing key, and a set that came without
	Word     string

	Continuity Continuity // of a resync and a gap
	From, To   time.Time  // of a gap: the last moment without and the first with a watch again
	Err        error      // of a down: why
}

// verdict compares a key as it was last known with what a GET found, for a watch
// that was blind in between. announced tells whether a notification told of what
// the GET found.
func verdict(before, now state, announced bool) Continuity {
	switch {
	case !before.present && !now.present:
		return ContinuityUnknown
	case before.present && now.present && !before.version.IsZero() && before.version.Equal(now.version):
		return ContinuityProven
	case now.present && now.version.Compare(before.version) < 0:
		return ContinuityLost // the store was restored
	case announced:
		return ContinuityUnknown
	case now.present && (before.version.IsZero() && before.present || now.version.IsZero()):
		return ContinuityUnknown // versions were not given
	}
	return ContinuityLost
}

// state is what is known of a key.
type state struct {
	present bool
	version Version // of the value, or of the deletion; zero if not known
}

// ErrOverflow ends a watch whose consumer was too slow.
var ErrOverflow = errors.New("the events are not consumed as fast as they come, and the buffer is full")
