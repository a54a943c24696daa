package store

import (
	"cmp"
	"time"
)

// An Observation is the outcome of a request, or another change of the store, for
// [Options.Observe].
type Observation struct {
	Kind               ObservationKind
	Time               time.Time // on the store's clock
	ClientID, Username string    // who asked; empty for an expiry

	Request *Request // of Requested; else nil
	Words   [][]byte // of Request; nil: its payload is no request
	Reply   []byte   // payload of the reply
	Key     []byte   // of Applied and Expired

	Outcome Outcome
	Cause   string // why the outcome is this one; may be empty
	Version []byte // of the reply, or of the change; empty: none

	// Notified are the notifications that the request or change has queued.
	Notified []Notification
}

// ObservationKind is what an [Observation] is about. Owners of a store may have others.
type ObservationKind string

// The kinds of observations of a store.
const (
	Requested ObservationKind = "request" // by [Store.Do]
	Applied   ObservationKind = "apply"   // by [Store.Apply]
	Expired   ObservationKind = "expire"  // of a key
)

// Outcome is the outcome of a request.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"      // the store did what was asked for
	OutcomeNo      Outcome = "no"      // a condition was not met, or the key was missing
	OutcomeRefused Outcome = "refused" // the reply is an error
	OutcomeIgnored Outcome = "ignored" // no reply
)

// The causes of outcomes.
const (
	causeMissing    = "missing"
	causeExists     = "exists"
	causeOtherValue = "another value"
	causeWasMissing = "was missing"
	causeSameValue  = "same value"
	causeNotWatched = "not watched"
	causeWatched    = "watched already"
)

// queued returns the notifications from the n-th on that were not taken yet.
func (s *Store) queued(n int) []Notification {
	if s.queue.taken {
		return nil
	}
	return s.queue.notes[n:]
}

// answerObserved is answer, and reports the request.
func (s *Store) answerObserved(c *call) Response {
	n := len(s.queued(0))
	r := s.answer(c)
	req := *c.Request // a copy, so that requests are on the heap only when there is an observer
	s.opts.Observe(Observation{
		Kind: Requested, Time: s.now, ClientID: c.ClientID, Username: c.Username,
		Request: &req, Words: c.words, Reply: r.Payload[len(c.dst):],
		Outcome: cmp.Or(c.outcome, OutcomeOK), Cause: c.cause, Version: r.Version, Notified: s.queued(n),
	})
	return r
}

// observeChange reports a change that no request made. n notifications were queued before
// it.
func (s *Store) observeChange(kind ObservationKind, clientID, username string, key, version []byte, n int) {
	if s.opts.Observe == nil {
		return
	}
	s.opts.Observe(Observation{
		Kind: kind, Time: s.now, ClientID: clientID, Username: username,
		Key: key, Outcome: OutcomeOK, Version: version, Notified: s.queued(n),
	})
}
