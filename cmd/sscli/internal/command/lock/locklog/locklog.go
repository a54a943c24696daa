// Package locklog turns the events of a watch on lock keys into statements about the locks.
//
//	h := locklog.New(locklog.Options{})
//	for e, err := range watch.Events(ctx) {
//		if statement, ok := h.See(e); ok {
//			fmt.Println(statement.What, statement.Name, statement.Holder)
//		}
//	}
//
// [History.See] converts an event to a statement. It uses neither a clock nor the network: the times
// come with the events. [Read] parses a line of a recorded stream. A [Chart] collects statements for a
// timeline. An [Observer] counts the renewals by the current holder.
//
// A notification says only that a key has a new value, or was deleted. Releasing a lock deletes its
// key, and so does the expiry of its lease. A History infers which of the two happened from the time
// between the last renewal and the deletion, and marks the statement as inferred. If that time allows
// both, the statement is `deleted`.
package locklog

import (
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// Values of format.LockEvent.What: what happened to a lock. Written and Removed are only for
// guarded keys. Gap and Lost are for locks and for guarded keys.
const (
	Held         = "held"          // held; the event does not show since when
	Free         = "free"          // free; the event does not show since when
	Acquired     = "acquired"      // acquired while it was free
	Renewed      = "renewed"       // written again by its holder
	Released     = "released"      // deleted before its lease could expire; always inferred
	Expired      = "expired"       // deleted when a renewal was overdue; always inferred
	Deleted      = "deleted"       // deleted; whether it expired is not known
	TakenOver    = "taken_over"    // acquired by another holder after the lease expired; always inferred
	ChangedHands = "changed_hands" // another holder's value, without a notification of a deletion in between; always inferred
	Rewritten    = "rewritten"     // written, but the store does not say with which value
	Gap          = "gap"           // not watched for some time
	Lost         = "lost"          // no longer watched
	Other        = "other"         // a notification that sscli does not know
	Written      = "written"
	Removed      = "removed"
)

// Options configure a [History].
type Options struct {
	Lease  time.Duration // the lease of the locks; 0 = not known
	Guards []string      // keys that are not locks, but whose writes are reported
}

// A History tracks the state of the locks in a watch.
type History struct {
	o      Options
	guards map[string]bool
	locks  map[string]*lock
	names  []string // the locks, in the order of their first events
}

// A lock is the known state of one lock.
type lock struct {
	known    bool // whether held is known
	held     bool
	holder   string         // the current holder; after a deletion the last one
	noHolder bool           // holder is not known
	since    time.Time      // the latest possible time of the acquisition or deletion
	exact    bool           // since is the exact time
	token    client.Version // the newest token

	last      time.Time // when an acquisition or renewal was last seen; zero = never
	renewals  int
	intervals time.Duration // sum of the times between writes by the holder
	n         int           // number of those times
	longest   time.Duration // the longest time between two writes by the holder

	expired bool // inferred: the lock is free because its lease expired
}

// New returns a History without any locks.
func New(o Options) *History {
	h := &History{o: o, guards: make(map[string]bool), locks: make(map[string]*lock)}
	for _, key := range o.Guards {
		h.guards[key] = true
	}
	return h
}

// Guard marks key as a guarded key, which is not a lock. Call it before the first event of the key.
func (h *History) Guard(key string) { h.guards[key] = true }

// See handles the next event of a watch and returns a statement about it. ok is false for an event that
// is not about a key, and for an event of a guarded key that is neither a change nor a gap nor an
// error.
func (h *History) See(e client.Event) (st format.LockEvent, ok bool) {
	for _, t := range []*time.Time{&e.Time, &e.From, &e.To} {
		*t = t.Truncate(time.Millisecond) // recordings have a precision of 1 ms
	}
	if e.Kind == client.EventFound {
		e.Kind = client.EventInitial // the first that is known of the key
	}
	st = format.LockEvent{Event: string(e.Kind), Name: e.Key, Time: e.Time, Token: e.Version, Unknown: true, Guard: h.guards[e.Key]}
	l := h.locks[e.Key]
	if l == nil {
		l = &lock{}
		if !st.Guard && e.Key != "" {
			h.locks[e.Key] = l
			h.names = append(h.names, e.Key)
		}
	}
	switch e.Kind {
	case client.EventInitial, client.EventSet, client.EventDelete, client.EventOther, client.EventResync:
	case client.EventGap:
		st.What, st.Continuity, st.From, st.To = Gap, string(e.Continuity), e.From, e.To
		return st, true
	case client.EventError:
		st.What, st.Why = Lost, e.Err.Error()
		l.known = false
		return st, true
	default:
		return st, false
	}
	if st.Guard {
		return h.handleGuard(st, e)
	}
	switch e.Kind {
	case client.EventInitial:
		l.reset(e, false)
		st.What = l.state()
	case client.EventSet:
		l.handleSet(&st, e)
	case client.EventDelete:
		l.handleDelete(&st, e, h.o.Lease)
	case client.EventResync:
		l.handleResync(&st, e)
	case client.EventOther:
		st.What, st.Word, st.Why = Other, e.Word, "the store says "+format.Brief(e.Word)+", which sscli does not know"
	}
	st.Held = l.held
	if l.held || st.What != Free {
		st.Holder, st.NoHolder = l.holder, l.noHolder
	}
	return st, true
}

// state returns the statement about the current state of the lock: Held or Free.
func (l *lock) state() string {
	if l.held {
		return Held
	}
	return Free
}

// reset replaces everything known about the lock with the state in an event. exact is true if the lock
// entered this state at the time of the event, not earlier.
func (l *lock) reset(e client.Event, exact bool) {
	*l = lock{known: true, held: e.HasValue || e.Kind == client.EventSet, holder: string(e.Value), since: e.Time, exact: exact, token: e.Version}
	l.noHolder = l.held && !e.HasValue
	if exact && l.held {
		l.last = e.Time
	}
}

// addSpan adds to a statement how long the lock had been held or free before the event.
func (l *lock) addSpan(st *format.LockEvent) {
	if l.known {
		st.For, st.AtLeast, st.Unknown = max(0, st.Time.Sub(l.since)), !l.exact, false
	}
}

// addRenewals adds to a statement the number of renewals by the holder, and the average time between
// them.
func (l *lock) addRenewals(st *format.LockEvent) {
	st.Renewals = l.renewals
	if l.n > 0 {
		st.Every = l.intervals / time.Duration(l.n)
	}
}

func (l *lock) handleSet(st *format.LockEvent, e client.Event) {
	l.addSpan(st)
	before := *l
	switch {
	case !l.known:
		l.reset(e, false)
		l.last = e.Time
		st.What = Held
	case !l.held:
		l.reset(e, true)
		st.What = Acquired
		if before.expired && e.HasValue && !before.noHolder && before.holder != l.holder {
			st.What, st.Before, st.Inferred = TakenOver, before.holder, true
			st.Why = "the previous holder's lease expired"
		}
	case !e.HasValue:
		st.What, st.Why = Rewritten, "the store does not say by whom: a renewal, or another holder"
		l.noHolder, l.token, l.last = true, e.Version, e.Time
	case l.noHolder:
		l.reset(e, false)
		l.last = e.Time
		st.What, st.Why = Held, "the store did not say by whom before"
	case string(e.Value) != l.holder:
		l.reset(e, true)
		st.What, st.Before, st.Inferred = ChangedHands, before.holder, true
		st.Why = "its value was written over, or the notification of its deletion was lost"
	default:
		l.renewals++
		if !l.last.IsZero() {
			apart := e.Time.Sub(l.last)
			l.intervals += apart
			l.n++
			l.longest = max(l.longest, apart)
		}
		l.token, l.last = e.Version, e.Time
		st.What = Renewed
		l.addRenewals(st)
	}
}

func (l *lock) handleDelete(st *format.LockEvent, e client.Event, lease time.Duration) {
	l.addSpan(st)
	if !l.known || !l.held {
		known := l.known
		l.reset(client.Event{Kind: client.EventDelete, Time: e.Time}, true)
		st.What, l.noHolder = Deleted, true
		if known {
			st.What, st.Why = Free, "it was deleted although it was free: the notification of an acquisition may be lost"
		}
		return
	}
	st.Token = l.token
	l.addRenewals(st)
	var why string
	st.What, why = l.inferEnd(e.Time, lease)
	st.Inferred, st.Why = st.What != Deleted, why
	before := *l
	l.reset(client.Event{Kind: client.EventDelete, Time: e.Time}, true)
	l.holder, l.noHolder, l.expired = before.holder, before.noHolder, st.What == Expired
}

// inferEnd infers whether a deletion was a release or an expiry, and returns the statement and its
// reason.
//
// A running holder renews the lock before it expires, usually several times per lease. So a deletion within the longest
// interval after the last renewal is a release, and one at least two intervals after it is an expiry.
func (l *lock) inferEnd(at time.Time, lease time.Duration) (what, why string) {
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
	case after <= l.longest: // the lease is longer
		return Released, came + ", before the next was overdue"
	case after >= 2*l.longest+jitter:
		return Expired, came + ", and renewals came every " + format.Span(l.intervals/time.Duration(l.n))
	}
	return Deleted, came + ", when the next was overdue: a late release and an expiry look the same"
}

// handleResync handles the state of the key at the end of a gap in the watch.
func (l *lock) handleResync(st *format.LockEvent, e client.Event) {
	st.Continuity = string(e.Continuity)
	before := *l
	if e.Continuity == client.ContinuityProven && before.known {
		l.addSpan(st)
		l.addRenewals(st)
		st.What, st.Why = l.state(), "nothing happened while it was not watched"
		return
	}
	l.reset(e, false)
	st.What = l.state()
	switch {
	case !before.known:
	case !before.held && !l.held:
		st.Why = "it may have been held while it was not watched"
	case !before.held:
		st.Why = "it was acquired while it was not watched"
	case !l.held:
		st.Why = "it was released, or expired, while it was not watched"
	case l.noHolder || before.noHolder:
	case before.holder != l.holder:
		st.Before = before.holder
		st.Why = "it changed hands while it was not watched"
	default:
		st.Why = "it was renewed, or released and acquired again, while it was not watched"
	}
}

// handleGuard completes the statement about an event of a guarded key. It returns false if the event
// does not report a change.
func (h *History) handleGuard(st format.LockEvent, e client.Event) (format.LockEvent, bool) {
	switch e.Kind {
	case client.EventSet:
		st.What = Written
	case client.EventDelete:
		st.What = Removed
	case client.EventResync:
		if e.Continuity != client.ContinuityLost {
			return st, false // nothing to add to the statement about the gap
		}
		st.What, st.Continuity, st.Why = Written, string(e.Continuity), "while it was not watched"
		if !e.HasValue {
			st.What = Removed
		}
		return st, true
	default:
		return st, false
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
		st.Why = "while " + strings.Join(holders, ", ")
	}
	return st, true
}
