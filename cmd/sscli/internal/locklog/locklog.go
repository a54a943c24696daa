// Package locklog says what happened to locks, from the events of a watch of their keys.
//
//	h := locklog.New(locklog.Options{})
//	for e, err := range watch.Events(ctx) {
//		if said, ok := h.See(e); ok {
//			fmt.Println(said.What, said.Name, said.Holder)
//		}
//	}
//
// [History.See] is a function from events to statements. It has no clock and no network: the
// times come with the events. [Read] makes events of a recorded stream. A [Chart]
// collects the statements for a timeline.
//
// A notification says that a key has a new value, or none, and no more. What follows from
// that alone is stated as it is. That a lock was released, or that its lease expired, does
// not: a release and an expiry look the same. It is inferred from the time between the last
// renewal and the deletion, and marked as inferred; where that says nothing either, the
// statement is `deleted`.
package locklog

import (
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// What happened to a lock, for format.LockEvent.What. Written and removed are of a guarded
// key.
const (
	Held         = "held"          // it is, and that is all that is known
	Free         = "free"          // the same
	Acquired     = "acquired"      // it was free, and now has a holder
	Renewed      = "renewed"       // its holder wrote it again
	Released     = "released"      // it was deleted before its lease could end; always inferred
	Expired      = "expired"       // it was deleted after a renewal was overdue; always inferred
	Deleted      = "deleted"       // it was deleted, and whether it expired is not known
	TakenOver    = "taken_over"    // acquired by another after it expired; always inferred
	ChangedHands = "changed_hands" // another holder's value was written over it, without a deletion
	Rewritten    = "rewritten"     // written, but the store does not say with what
	Gap          = "gap"           // it was not watched for a while
	Lost         = "lost"          // it is no longer watched
	Other        = "other"         // a notification with an unknown word
	Written      = "written"
	Removed      = "removed"
)

// Options of a [History].
type Options struct {
	Lease  time.Duration // of the locks, if it is known; 0: it is not
	Guards []string      // keys that are no locks: their writes are noted
}

// A History is what is known of some locks.
type History struct {
	o      Options
	guards map[string]bool
	locks  map[string]*lock
	names  []string // of the locks, in the order in which they were first seen
}

// A lock is what is known of one lock.
type lock struct {
	known    bool // whether it is held
	held     bool
	holder   string
	noHolder bool // holder is not known
	since    time.Time
	exact    bool           // since is when it was acquired, or deleted
	token    client.Version // the newest

	last     time.Time // of the acquisition or renewal that was seen last; zero: none
	renewals int
	between  time.Duration // the sum of the times between renewals
	n        int           // of those times
	longest  time.Duration // of them

	expired bool // how it became free, as inferred; holder is the one that had it
}

// New returns a History that knows nothing yet.
func New(o Options) *History {
	h := &History{o: o, guards: make(map[string]bool), locks: make(map[string]*lock)}
	for _, key := range o.Guards {
		h.guards[key] = true
	}
	return h
}

// Guard notes that a key is no lock, before its first event.
func (h *History) Guard(key string) { h.guards[key] = true }

// See takes the next event of a watch and says what it means. Events that are not about a
// key have no meaning here.
func (h *History) See(e client.Event) (format.LockEvent, bool) {
	for _, t := range []*time.Time{&e.Time, &e.From, &e.To} {
		*t = t.Truncate(time.Millisecond) // as a recording has it
	}
	said := format.LockEvent{Event: string(e.Kind), Name: e.Key, Time: e.Time, Token: e.Version, Unknown: true}
	switch e.Kind {
	case client.EventInitial, client.EventSet, client.EventDelete, client.EventOther, client.EventGap, client.EventResync, client.EventError:
	default:
		return said, false
	}
	if h.guards[e.Key] {
		return h.guarded(said, e)
	}
	l := h.locks[e.Key]
	if l == nil {
		l = &lock{}
		h.locks[e.Key] = l
		h.names = append(h.names, e.Key)
	}
	switch e.Kind {
	case client.EventInitial:
		l.begin(e, false)
		said.What = l.state()
	case client.EventSet:
		l.set(&said, e)
	case client.EventDelete:
		l.deleted(&said, e, h.o.Lease)
	case client.EventResync:
		l.resync(&said, e)
	case client.EventOther:
		said.What, said.Word, said.Why = Other, e.Word, "the store says "+format.Brief(e.Word)+", which sscli does not know"
	case client.EventGap:
		said.What, said.Continuity, said.From, said.To = Gap, string(e.Continuity), e.From, e.To
		return said, true
	case client.EventError:
		said.What, said.Why = Lost, e.Err.Error()
		l.known = false
		return said, true
	}
	said.Held = l.held
	if l.held || said.What != Free {
		said.Holder, said.NoHolder = l.holder, l.noHolder
	}
	return said, true
}

// state is the word for what is known of a lock without a change.
func (l *lock) state() string {
	if l.held {
		return Held
	}
	return Free
}

// begin starts anew from a state of the key. exact says that the lock came into it now.
func (l *lock) begin(e client.Event, exact bool) {
	*l = lock{known: true, held: e.HasValue || e.Kind == client.EventSet, holder: string(e.Value), since: e.Time, exact: exact, token: e.Version}
	l.noHolder = l.held && !e.HasValue
	if exact && l.held {
		l.last = e.Time
	}
}

// span puts into a statement how long the lock was held or free until now.
func (l *lock) span(said *format.LockEvent) {
	if l.known {
		said.For, said.AtLeast, said.Unknown = max(0, said.Time.Sub(l.since)), !l.exact, false
	}
}

// count puts into a statement how often the holder renewed the lock.
func (l *lock) count(said *format.LockEvent) {
	said.Renewals = l.renewals
	if l.n > 0 {
		said.Every = l.between / time.Duration(l.n)
	}
}

// set takes a notification of a new value.
func (l *lock) set(said *format.LockEvent, e client.Event) {
	l.span(said)
	before := *l
	switch {
	case !l.known:
		l.begin(e, false)
		l.last = e.Time
		said.What = Held
	case !l.held:
		l.begin(e, true)
		said.What = Acquired
		if before.expired && e.HasValue && !before.noHolder && before.holder != l.holder {
			said.What, said.Before, said.Inferred = TakenOver, before.holder, true
			said.Why = "the lease of the holder before it expired"
		}
	case !e.HasValue:
		said.What, said.Why = Rewritten, "the store does not say by whom: a renewal, or another holder"
		l.noHolder, l.token, l.last = true, e.Version, e.Time
	case l.noHolder:
		l.begin(e, false)
		l.last = e.Time
		said.What, said.Why = Held, "the store did not say by whom before"
	case string(e.Value) != l.holder:
		l.begin(e, true)
		said.What, said.Before = ChangedHands, before.holder
		said.Why = "its value was written over, which no acquisition does"
	default:
		l.renewals++
		if !l.last.IsZero() {
			apart := e.Time.Sub(l.last)
			l.between += apart
			l.n++
			l.longest = max(l.longest, apart)
		}
		l.token, l.last = e.Version, e.Time
		said.What = Renewed
		l.count(said)
	}
}

// deleted takes a notification that the key is gone.
func (l *lock) deleted(said *format.LockEvent, e client.Event, lease time.Duration) {
	l.span(said)
	if !l.known || !l.held {
		known := l.known
		l.begin(client.Event{Kind: client.EventDelete, Time: e.Time}, true)
		said.What, l.noHolder = Deleted, true
		if known {
			said.What, said.Why = Free, "it was deleted although it was free"
		}
		return
	}
	said.Token = l.token
	l.count(said)
	var why string
	said.What, why = l.end(e.Time, lease)
	said.Inferred, said.Why = said.What != Deleted, why
	was := *l
	l.begin(client.Event{Kind: client.EventDelete, Time: e.Time}, true)
	l.holder, l.noHolder, l.expired = was.holder, was.noHolder, said.What == Expired
}

// end infers how a hold ended with a deletion, and says from what.
//
// A holder that lives renews the lock several times in a lease, so its release comes no
// later than one interval after the last renewal, and the lease does not end before two.
func (l *lock) end(at time.Time, lease time.Duration) (what, why string) {
	if l.last.IsZero() {
		return Deleted, "no acquisition and no renewal was seen, so a release and an expiry look the same"
	}
	after := at.Sub(l.last)
	last := "the last renewal"
	if l.renewals == 0 {
		last = "the last write"
	}
	came := fmt.Sprintf("deleted %s after %s", format.Span(after), last)
	switch slack := min(lease/20, 500*time.Millisecond); {
	case lease > 0 && after >= lease-slack:
		return Expired, came + ", which is the lease"
	case lease > 0:
		return Released, came + ", and the lease is " + format.Span(lease)
	}
	const jitter = 100 * time.Millisecond
	switch {
	case l.n == 0:
		return Deleted, came + ", and without renewals a release and an expiry look the same"
	case after <= l.longest+l.longest/4+jitter:
		return Released, came + ", before the next was overdue"
	case after >= 2*l.longest+jitter:
		return Expired, came + ", and renewals came every " + format.Span(l.between/time.Duration(l.n))
	}
	return Deleted, came + ", when the next was overdue: a late release and an expiry look the same"
}

// resync takes the state of the key after it was not watched.
func (l *lock) resync(said *format.LockEvent, e client.Event) {
	said.Continuity = string(e.Continuity)
	before := *l
	if e.Continuity == client.ContinuityProven && before.known {
		l.span(said)
		l.count(said)
		said.What, said.Why = l.state(), "nothing happened while it was not watched"
		return
	}
	l.begin(e, false)
	said.What = l.state()
	switch {
	case !before.known:
	case !before.held && !l.held:
		said.Why = "it may have been held while it was not watched"
	case !before.held:
		said.Why = "it was acquired while it was not watched"
	case !l.held:
		said.Why = "it was released, or expired, while it was not watched"
		l.holder, l.noHolder = before.holder, before.noHolder
	case l.noHolder || before.noHolder:
	case before.holder != l.holder:
		said.Before = before.holder
		said.Why = "it changed hands while it was not watched"
	default:
		said.Why = "it was renewed, or released and acquired again, while it was not watched"
	}
}

// guarded says what happened to a key that is no lock.
func (h *History) guarded(said format.LockEvent, e client.Event) (format.LockEvent, bool) {
	said.Guard = true
	switch e.Kind {
	case client.EventSet:
		said.What = Written
	case client.EventDelete:
		said.What = Removed
	case client.EventGap:
		said.What, said.Continuity, said.From, said.To = Gap, string(e.Continuity), e.From, e.To
		return said, true
	case client.EventError:
		said.What, said.Why = Lost, e.Err.Error()
		return said, true
	case client.EventResync:
		if e.Continuity != client.ContinuityLost {
			return said, false // the gap before it says what is not known
		}
		said.What, said.Continuity, said.Why = Written, string(e.Continuity), "while it was not watched"
		if !e.HasValue {
			said.What = Removed
		}
		return said, true
	default:
		return said, false
	}
	var holders []string
	for _, name := range h.names {
		switch l := h.locks[name]; {
		case !l.known:
		case !l.held:
			holders = append(holders, format.BriefWord(name)+" was free")
		case l.noHolder:
			holders = append(holders, format.BriefWord(name)+" was held")
		default:
			holders = append(holders, format.BriefWord(name)+" was held by "+format.Brief(l.holder))
		}
	}
	if len(holders) > 0 {
		said.Why = "while " + strings.Join(holders, ", ")
	}
	return said, true
}
