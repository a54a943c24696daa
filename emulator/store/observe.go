package store

import (
	"bytes"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// An Observation is what became of a request, or another change of the store, for
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

	// Notified are the notifications that this has queued.
	Notified []Notification
}

// ObservationKind is what an [Observation] is about. Owners of a store may have others.
type ObservationKind string

// The kinds of observations of a store.
const (
	Requested ObservationKind = "request" // by [Store.Do]
	Applied   ObservationKind = "apply"   // by [Store.Apply]
	Expired   ObservationKind = "expire"  // a key was removed because its time was over
)

// Outcome is what became of a request.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"      // the store did what was asked for
	OutcomeNo      Outcome = "no"      // a condition was not met, or nothing was there
	OutcomeRefused Outcome = "refused" // the reply is an error
	OutcomeIgnored Outcome = "ignored" // no reply
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
	n, keys := len(s.queued(0)), s.index.len()
	r := s.answer(c)
	req := *c.Request // a copy, so that the request need not be allocated when nobody observes
	o := Observation{
		Kind: Requested, Time: s.now, ClientID: c.ClientID, Username: c.Username,
		Request: &req, Words: c.words, Reply: r.Payload[len(c.dst):], Version: r.Version, Notified: s.queued(n),
	}
	o.Outcome, o.Cause = judge(o.Words, o.Reply, s.index.len() > keys)
	s.opts.Observe(o)
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

// judge reads the outcome of a request from its reply.
func judge(words [][]byte, payload []byte, isNew bool) (Outcome, string) {
	reply, err := wire.ParseReply(payload)
	if err != nil { // a store writes no such reply
		return OutcomeRefused, err.Error()
	}
	if refused := reply.StoreError(); refused != nil {
		return OutcomeRefused, refused.Text
	}
	verb := ""
	if len(words) > 0 {
		verb = string(bytes.ToUpper(words[0]))
	}
	number := reply.Value.Int
	switch {
	case reply.Value.Kind == wire.Null:
		return OutcomeNo, "missing"
	case reply.Value.Kind != wire.Integer:
		return OutcomeOK, met(verb, words, isNew)
	case number > 0:
		return OutcomeOK, ""
	case number < 0 && verb == wire.VerbSet && has(words, wire.OptionNX):
		return OutcomeNo, "exists"
	case number < 0:
		return OutcomeNo, "another value"
	case verb == wire.VerbKeyNotify && len(words) > 2:
		return OutcomeNo, "not watched"
	case verb == wire.VerbKeyNotify:
		return OutcomeNo, "watched already"
	default:
		return OutcomeNo, "missing"
	}
}

// met says why a SET with NEX was applied: with it, clients make locks and extend them.
func met(verb string, words [][]byte, isNew bool) string {
	switch {
	case verb != wire.VerbSet || !has(words, wire.OptionNEX):
		return ""
	case isNew:
		return "was missing"
	default:
		return "same value"
	}
}

// has tells whether an option is among the words after the value.
func has(words [][]byte, option string) bool {
	for _, w := range words[min(3, len(words)):] {
		if string(bytes.ToUpper(w)) == option {
			return true
		}
	}
	return false
}
