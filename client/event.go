package client

import (
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	EventInitial   EventKind = "initial"   // the key's state when the watch began
	EventFound     EventKind = "found"     // the state of a key that WatchOptions.Match found; its earlier changes are unknown
	EventSet       EventKind = "set"       // the key was written
	EventDelete    EventKind = "delete"    // the key was deleted, or expired
	EventOther     EventKind = "other"     // a notification of an unknown kind
	EventGap       EventKind = "gap"       // events are missing, or may be
	EventResync    EventKind = "resync"    // the key's state after a break
	EventError     EventKind = "error"     // the key is no longer watched; see Err
	EventDown      EventKind = "down"      // the connection was lost; has no key
	EventUp        EventKind = "up"        // all keys are watched again; has no key
	EventReady     EventKind = "ready"     // all keys have been read; only with WatchOptions.Ready; has no key
	EventUnaudited EventKind = "unaudited" // an audit failed and proves nothing; see Err; has no key
)

// Continuity says whether events were lost during a break.
type Continuity string

// What is known about the events of a break.
const (
	ContinuityProven  Continuity = "proven"  // the key has the same version: no event was lost
	ContinuityLost    Continuity = "lost"    // at least one event was missed
	ContinuityUnknown Continuity = "unknown" // cannot be determined
)

// An Event is one element of a [Watch].
type Event struct {
	Kind    EventKind
	Key     string
	Time    time.Time // when the client received or created the event, by the local clock
	Version Version   // in a gap or an error, the last known version; zero = unknown

	Value    []byte
	HasValue bool   // false for a deletion, a missing key, and a set whose notification had no value
	Word     string // in an other event, the unknown word of the notification

	Continuity Continuity // set in resync, gap and found events
	From, To   time.Time  // gap: any missing event happened between them; found: the key appeared between them
	Err        error      // the reason for a down, error or unaudited event
}

// eventJSON is an event as JSON: Err, which can be of any type, becomes its text.
type eventJSON struct {
	plainEvent
	Key64  []byte `json:"Key_b64,omitempty"` // in place of Key if it is not UTF-8
	Word64 []byte `json:"Word_b64,omitempty"`
	Err    string `json:",omitempty"`
}

type plainEvent Event

// MarshalJSON returns an object with the fields of the event. Err becomes a string. A Key or Word that is not UTF-8
// is the member Key_b64 or Word_b64, in Base64.
func (e Event) MarshalJSON() ([]byte, error) {
	j := eventJSON{plainEvent: plainEvent(e)}
	if !utf8.ValidString(e.Key) {
		j.Key, j.Key64 = "", []byte(e.Key)
	}
	if !utf8.ValidString(e.Word) {
		j.Word, j.Word64 = "", []byte(e.Word)
	}
	if e.Err != nil {
		j.Err = e.Err.Error()
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON, except that Err is only a text.
func (e *Event) UnmarshalJSON(data []byte) error {
	j := eventJSON{plainEvent: plainEvent(*e)}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*e = Event(j.plainEvent)
	if j.Key64 != nil {
		e.Key = string(j.Key64)
	}
	if j.Word64 != nil {
		e.Word = string(j.Word64)
	}
	if e.Err = nil; j.Err != "" {
		e.Err = errors.New(j.Err)
	}
	return nil
}

// isReply reports whether an event comes from a request of the watch itself, as opposed to a notification or a change
// of the connection.
func (e Event) isReply() bool {
	switch e.Kind {
	case EventInitial, EventFound, EventGap, EventResync, EventError:
		return true
	}
	return false
}

// changed returns the time of the change that a notification announces, or an earlier time. It returns
// the time in the version, or the time of arrival if that is earlier, because the store's or a writer's
// clock may be ahead. For a notification without a version it returns the start of the Unix epoch.
func (e Event) changed() time.Time {
	if t := e.Version.Time(); e.Version.IsZero() || t.Before(e.Time) {
		return t
	}
	return e.Time
}

// ErrOverflow ends a watch whose consumer was too slow.
var ErrOverflow = errors.New("the events are not consumed as fast as they come, and the buffer is full")
