package client

import (
	"context"
	"fmt"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/retry"
)

// wallTick is how often a held lock checks the wall clock. A timer for the whole term would be
// late, because timers stop while a machine sleeps.
const wallTick = 250 * time.Millisecond

// keep renews the lock until it is lost or released. It returns only when no renewal is in
// flight.
func (l *Lock) keep() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	replies := make(chan claim, 1)
	renewing, failures := false, 0
	due := l.lease.Sent.Add(l.timing.Interval)
	var began time.Time // when the last attempt began
	timer := time.NewTimer(0)
	defer timer.Stop()
	wake := l.w.wake
	lost := l.readEvents(false)
	for lost == nil {
		lease := l.Lease()
		wait := min(lease.TermIn(), wallTick)
		if wait <= 0 {
			lost = l.loss(LossNoRenewal, nil)
			break
		}
		if until := time.Until(due); !renewing && until <= 0 {
			renewing, began = true, time.Now()
			held := knownVersions{token: lease.Token, seen: l.seen, more: l.unanswered || l.unversioned}
			go func() { replies <- l.s.claim(ctx, l.name, l.o, l.timing, l.s.o.Timeout, &held) }()
		} else if !renewing {
			wait = min(wait, until)
		}
		timer.Reset(wait)
		select {
		case c := <-replies:
			renewing = false
			// These events arrived before the reply, so handle them first.
			if lost = l.readEvents(true); lost != nil {
				l.unconfirmed.add(c)
				break
			}
			if c.err != nil {
				failures++
				due = began.Add(retry.Pause(failures, l.timing.Interval))
			} else {
				failures = 0
				due = c.lease.Sent.Add(l.timing.Interval)
			}
			lost = l.renewed(c)
		case <-wake:
			if lost = l.readEvents(true); l.unwatched {
				wake = nil
			}
		case <-timer.C:
		case <-l.releasing:
			stop()
			if renewing {
				l.unconfirmed.add(<-replies)
			}
			return
		case <-l.s.ctx.Done():
			l.trouble = mqtt.ErrClosed
			lost = l.loss(LossNoRenewal, nil)
		}
	}
	l.cancel(lost)
	stop()
	if renewing {
		l.unconfirmed.add(<-replies)
	}
}

// renewed handles the reply to a renewal and returns how the lock was lost, or nil. A late
// reply does not extend the lock: the lock may have expired before the renewal, which then
// acquired it again.
func (l *Lock) renewed(c claim) *LockLostError {
	l.unconfirmed.add(c)
	switch {
	case c.err != nil:
		l.unanswered = l.unanswered || isA[*LostReplyError](c.err)
		l.trouble = c.err
		l.reportTrouble(c.err)
		return nil
	case c.gone:
		return l.loss(LossDeleted, nil)
	case !c.held:
		return l.loss(LossTaken, c.holder)
	case l.lease.TermIn() <= 0:
		return l.loss(LossNoRenewal, nil)
	case c.lease.Token.IsZero():
		c.lease.Token = l.lease.Token
	case c.lease.Token.Compare(l.lease.Token) <= 0:
		return l.loss(LossDeleted, nil) // versions only grow, so the store has forgotten the lock
	}
	l.mu.Lock()
	l.lease = c.lease
	l.mu.Unlock()
	l.trouble, l.unanswered = nil, false
	l.reportTrouble(nil)
	if l.o.OnLease != nil {
		l.o.OnLease(c.lease)
	}
	return nil
}

func (l *Lock) reportTrouble(err error) { l.o.reportTrouble(&l.troubled, err) }

// reportTrouble calls OnTrouble with err. It reports a nil err only once after an error; troubled
// records whether the previous err was an error.
func (o *LockOptions) reportTrouble(troubled *bool, err error) {
	if o.OnTrouble != nil && (err != nil || *troubled) {
		o.OnTrouble(err)
	}
	*troubled = err != nil
}

func (l *Lock) loss(why Loss, holder []byte) *LockLostError {
	return &LockLostError{Name: l.name, Loss: why, Holder: holder, Lease: l.Lease(), Err: l.trouble}
}

// readEvents handles the events of the watch and returns how the lock was lost, or nil. If since is
// true, all events came after the acquisition. Otherwise readEvents ignores events without a version.
func (l *Lock) readEvents(since bool) *LockLostError {
	for {
		e, ok, err := l.w.pop()
		if err != nil && !l.unwatched {
			l.unwatched = true
			l.reportTrouble(fmt.Errorf("the lock is no longer watched: %w", err))
		}
		if !ok {
			return nil
		}
		switch e.Kind {
		case EventDown:
			l.broken = l.broken || since
			l.reportTrouble(e.Err)
			continue
		case EventUp:
			l.reportTrouble(nil)
			continue
		case EventDelete, EventSet:
			if !since && e.Version.IsZero() {
				continue
			}
			if string(e.Value) == string(l.o.Holder) {
				l.unversioned = l.unversioned || e.Version.IsZero()
				if e.Version.Compare(l.seen) > 0 {
					l.seen = e.Version
				}
			}
		case EventResync:
			if !l.broken && e.Version.IsZero() {
				continue
			}
		default:
			continue
		}
		if !e.Version.IsZero() && e.Version.Compare(l.first) < 0 {
			continue
		}
		switch {
		case e.HasValue && string(e.Value) != string(l.o.Holder):
			return l.loss(LossTaken, e.Value)
		case !e.HasValue && e.Kind != EventSet:
			return l.loss(LossDeleted, nil)
		}
	}
}
