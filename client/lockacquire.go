package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"time"

	"github.com/sscli/sscli/internal/retry"
)

// lockPoll is the longest time between two attempts to acquire a lock. Waiting for a
// notification alone is not enough, because a notification can be lost.
const lockPoll = 5 * time.Second

// AcquireLock acquires a lock. The caller must renew it with [Session.RenewLock] and release it
// with [Session.ReleaseLock], and pass the lease's Holder in their options.
//
// If another client holds the lock, AcquireLock waits for at most Wait, or not at all with Try.
// It registers for notifications of the key first, so that it misses no release. It also tries, or
// reads the key, at least every 5 s, because a notification can be lost. The wait survives a broken
// connection and, until Wait has passed, requests that get no reply. Without Wait, AcquireLock fails
// if the first attempt gets no reply.
//
// AcquireLock undoes an attempt that got no usable reply, so that the lock does not stay held without
// an owner. It may therefore return later than ctx and Wait allow. The delay is at most the time until
// the attempt expires (LockTiming.Interval, rounded up to whole seconds) plus Options.Timeout. AcquireLock
// does not undo an attempt if o.Holder already held the lock, because the earlier lease may be in use.
//
// If an attempt got no reply and a later one acquired the lock, AcquireLock waits until the former has expired
// and then renews the lock, so that no attempt acquires it again after [Session.ReleaseLock].
//
// The errors are *[InvalidError], *[LockBusyError], and the errors of [Session.Do] and
// [Session.Watch]. A *[LockUnknownError] means that an attempt was not undone: the lock may
// stay held for its TTL.
func (s *Session) AcquireLock(ctx context.Context, name string, options ...LockOptions) (Lease, error) {
	a, err := s.newAcquisition(name, options)
	if err != nil {
		return Lease{}, err
	}
	a.settles = true
	if err := s.reach(ctx); err != nil {
		return Lease{}, err
	}
	if !a.o.Try {
		if err := a.begin(ctx); err != nil {
			return Lease{}, err
		}
		defer a.closeWatch(ctx)
	}
	lease, err := a.run(ctx)
	if err == nil && a.o.OnLease != nil {
		a.o.OnLease(lease)
	}
	return lease, err
}

// An acquisition is the state of one [Session.Lock] or [Session.AcquireLock] call.
type acquisition struct {
	s       *Session
	name    string
	o       LockOptions
	timing  LockTiming
	w       *Watch // nil with LockOptions.Try
	began   time.Time
	settles bool       // no attempt may be applied after the last one, because nobody would undo it
	unique  bool       // the holder is generated before the first attempt, so no other acquisition uses it
	tells   bool       // the holder tells when the wait began
	again   bool       // the holder already held the lock before the first attempt
	first   bool       // no attempt was answered and there is no Wait: give up if this one is not answered
	until   time.Time  // the deadline for undoing attempts; zero until giveUp sets it
	status  LockStatus // the last known status
	refused Version    // the key's version, if the last attempt was refused; see readStatus
	free    bool       // the watch has reported since the last attempt that the key is missing

	answered  bool          // an attempt was answered
	last      turn          // the session's last turn with this lock
	handOvers int           // how often the watch has reported that another client acquired the lock
	givesWay  bool          // the lock is free, and this session has just released it
	deferred  bool          // the lock was released, and nobody took it during a pause
	rests     int           // how often it rested
	released  time.Time     // when the watch last reported that the key was deleted
	passed    int           // how often the lock has passed quickly since it last passed slowly
	since     time.Time     // when the first of these holders was reported
	lastPace  time.Duration // see pace, at the last rest
	refusals  int           // how many attempts were refused since the watch began
	usual     time.Duration // how long those who acquire the lock have waited; one of them changes it by a fourth; see knows
	roundTrip time.Duration // of the watch, then of refused attempts; less if others took the lock in less

	reported    []byte    // the holder last passed to OnWait
	reportedAt  time.Time // when reported was passed to OnWait
	troubled    bool      // OnTrouble was last called with an error
	unconfirmed unconfirmed
}

func (s *Session) newAcquisition(name string, options []LockOptions) (*acquisition, error) {
	o, err := option(options)
	t, badTiming := o.Timing()
	if err = cmp.Or(s.check(), err, badTiming); err != nil {
		return nil, err
	}
	if o.Wait < 0 {
		return nil, invalid("the wait %v must not be negative", o.Wait)
	}
	unique := len(o.Holder) == 0
	o.Holder = bytes.Clone(o.Holder) // the caller may change its own
	a := &acquisition{s: s, name: name, o: o, timing: t, began: time.Now(), unique: unique, status: LockStatus{Name: name, Held: true}}
	return a, Get(name).Check()
}

// begin watches the lock's key, once it is time to compete for it.
func (a *acquisition) begin(ctx context.Context) error {
	if away := a.away(); away > 0 && !a.o.Try {
		if err := a.s.sleep(ctx, away); err != nil {
			return err
		}
	}
	sent := time.Now()
	err := a.watch(ctx)
	if took := time.Since(sent); took < quickHold { // otherwise the watch may have waited for a connection
		a.roundTrip = took // at most two; the first attempt is one
	}
	return err
}

// watch watches the lock's key. With LockOptions.Wait, it retries until that time has passed. Once an
// attempt was answered, it retries in any case.
func (a *acquisition) watch(ctx context.Context) error {
	waiting, cancel := limitTo(ctx, a.left())
	defer cancel()
	var w *Watch
	var trouble error
	err := a.s.persist(waiting, retry.Options{Again: a.keepsTrying, Tell: a.reportTrouble}, func() error {
		patience := a.s.o.Timeout
		if a.rests > 0 {
			patience = min(patience, max(a.left(), time.Millisecond))
		}
		limited, cancel := limitTo(ctx, patience)
		defer cancel()
		w, trouble = a.s.Watch(limited, []string{a.name})
		return trouble
	})
	switch {
	case err == nil:
		a.w, a.passed, a.refusals = w, 0, 0
		a.reportTrouble(nil)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case waiting.Err() != nil:
		return trouble
	}
	return err
}

func (a *acquisition) keepsTrying(err error) bool {
	return (a.answered || a.o.Wait > 0) && !a.s.isFinal(err) && a.s.ctx.Err() == nil
}

// left returns how much of LockOptions.Wait is left.
func (a *acquisition) left() time.Duration {
	if a.o.Wait == 0 {
		return math.MaxInt64
	}
	return a.o.Wait - time.Since(a.began)
}

func (a *acquisition) reportTrouble(err error) { a.o.reportTrouble(&a.troubled, err) }

// closeWatch closes the watch. If giveUp has set a.until, closeWatch waits at most until then. An error
// is ignored, because the registration also ends with the connection.
func (a *acquisition) closeWatch(ctx context.Context) {
	if a.until.IsZero() {
		_ = a.w.closeWithin(ctx)
		return
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.until)
	defer cancel()
	_ = a.w.close(ctx)
}

// readHolder generates the holder if there is none, and sets a.again: whether o.Holder already holds the lock.
func (a *acquisition) readHolder(ctx context.Context) (err error) {
	before := a.status
	switch {
	case a.w != nil:
		err = a.readEvents()
		before = a.status
	case !a.unique:
		before, err = a.s.LockStatus(ctx, a.name)
	}
	if a.free {
		a.nameHolder(Version{})
	} else {
		a.nameHolder(a.status.Token)
	}
	a.again = err == nil && bytes.Equal(before.Holder, a.o.Holder)
	return err
}

// nameHolder generates the holder, if none is given, with the time when the wait began. token is the version of the lock that
// another client holds; zero = the lock may be free. Once a request with a holder may be applied, the holder stays.
func (a *acquisition) nameHolder(token Version) {
	if !a.unique || a.tells || a.unconfirmed.n > 0 || a.unconfirmed.held {
		return
	}
	var began time.Time
	if a.tells = !token.IsZero(); a.tells {
		// Neither the token nor what the session sends is ahead of the store's clock.
		began = later(a.s.clock.Stamp(time.Now()).Time(), token.Time()).Add(-time.Since(a.began))
	}
	a.o.Holder = newHolder(cmp.Or(a.o.HolderName, a.s.o.ClientID), began)
}

// run tries to acquire the lock until it holds the lock or gives up, and waits between the attempts.
func (a *acquisition) run(ctx context.Context) (Lease, error) {
	if err := a.readHolder(ctx); err != nil {
		return Lease{}, err
	}
	failures := 0
	if a.givesWay = a.free && !a.o.Try && a.comesBack(); a.givesWay {
		a.answered = true // that it is free
		if err := a.wait(ctx, failures, nil); err != nil {
			return Lease{}, a.giveUp(ctx, err)
		}
	}
	for {
		if err := a.readEvents(); err != nil {
			return Lease{}, a.giveUp(ctx, err)
		}
		a.free = false
		within := a.s.o.Timeout
		a.first = !a.answered && a.o.Wait == 0
		if a.first {
			within = max(within-time.Since(a.began), time.Millisecond) // the watch has used part of the timeout
		}
		c := a.s.claim(ctx, a.name, a.o, a.timing, within, nil)
		a.unconfirmed.add(c)
		a.refused = c.lease.Token
		if ctx.Err() != nil {
			a.unconfirmed.held = a.unconfirmed.held || c.held
			return Lease{}, a.giveUp(ctx, context.Cause(ctx))
		}
		if c.err = c.unusable(); c.err != nil && c.held {
			a.unconfirmed.held = true
		}
		switch {
		case c.err == nil && c.held && a.settles && a.unconfirmed.n > 0:
			a.answered, failures, a.unconfirmed.held = true, 0, true
			if err := a.s.awaitExpiry(ctx, a.unconfirmed); err != nil {
				return Lease{}, a.giveUp(ctx, err)
			}
			a.unconfirmed = unconfirmed{held: true}
			continue // to know the newest token, or that the lock expired meanwhile
		case c.err == nil && c.held:
			a.remember()
			c.lease.Again = a.again
			return c.lease, nil
		case c.err == nil:
			a.answered, failures = true, 0
			a.refusals++
			a.nameHolder(a.refused)
			a.reportTrouble(nil)
			took := time.Since(c.lease.Sent)
			a.roundTrip = min(took, cmp.Or(a.roundTrip, took)*5/4) // one attempt that took long changes it little
		case a.o.Try || !a.keepsTrying(c.err):
			return Lease{}, a.giveUp(ctx, c.err)
		default:
			failures++
			a.reportTrouble(c.err)
		}
		if a.o.Try {
			a.readStatus(ctx)
			return Lease{}, a.giveUp(ctx, &LockBusyError{Status: a.status})
		}
		if err := a.wait(ctx, failures, c.err); err != nil {
			return Lease{}, a.giveUp(ctx, err)
		}
	}
}

// wait returns nil when another attempt is due: the lock may be free, or lockPoll has passed.
// trouble is the error of the last attempt; wait returns it when LockOptions.Wait has passed.
func (a *acquisition) wait(ctx context.Context, failures int, trouble error) error {
	again := lockPoll/2 + mathrand.N(lockPoll/2)
	if failures > 0 {
		again = retry.Pause(failures, lockPoll)
	}
	poll := time.NewTimer(again)
	defer poll.Stop()
	var over <-chan time.Time
	if a.o.Wait > 0 {
		limit := time.NewTimer(a.left())
		defer limit.Stop()
		over = limit.C
	}
	var turn <-chan time.Time // when to try, if the lock is still free then
	for {
		err := a.readEvents()
		switch {
		case err != nil:
			return err
		case !a.free:
			turn, a.givesWay = nil, false
			if failures == 0 || a.status.Holder != nil && !bytes.Equal(a.status.Holder, a.o.Holder) { // another holds it
				a.reportWait(ctx)
			}
			if failures == 0 && a.crowded() {
				if err := a.rest(ctx); err != nil {
					return err
				}
				poll.Reset(again) // the new watch has read the key
				continue
			}
		case turn == nil:
			pause := a.pause()
			if pause <= 0 {
				return nil
			}
			turn = time.After(pause)
		}
		select {
		case <-a.w.wake:
		case <-turn:
			if a.givesWay {
				a.givesWay, a.last.gaveWay = false, time.Now()
			} else {
				a.deferred = true
			}
			return nil
		case <-poll.C:
			return nil
		case <-over:
			if a.free {
				return nil // a released lock is tried before the wait ends
			}
			if trouble != nil {
				return trouble
			}
			a.readStatus(ctx)
			return &LockBusyError{Status: a.status, Waited: a.o.Wait}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reportWait calls OnWait if a call is due. wait calls reportWait at least every lockPoll.
func (a *acquisition) reportWait(ctx context.Context) {
	if a.o.OnWait == nil || a.reported != nil && bytes.Equal(a.reported, a.status.Holder) && time.Since(a.reportedAt) < time.Minute {
		return
	}
	if a.status.Holder != nil { // otherwise the notification that names the holder is on its way
		a.readStatus(ctx)
	}
	a.reported, a.reportedAt = append([]byte{}, a.status.Holder...), time.Now()
	a.o.OnWait(a.status)
}

// readStatus updates a.status for a message, unless the watch keeps it up to date. An attempt was refused because of
// a newer version of the key if the notification of that version was lost. An error does not matter.
func (a *acquisition) readStatus(ctx context.Context) {
	if a.w != nil && a.refused.Compare(a.status.Token) <= 0 {
		return
	}
	if now, err := a.s.LockStatus(ctx, a.name); err == nil && now.Held {
		a.status = now
	}
}

// readEvents reads the events of the watch, and records the holder in a.status and whether the lock is
// free in a.free.
func (a *acquisition) readEvents() error {
	for a.w != nil {
		e, ok, err := a.w.pop()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch e.Kind {
		case EventDown:
			a.reportTrouble(e.Err)
		case EventUp:
			a.reportTrouble(nil)
		case EventInitial, EventResync, EventSet, EventDelete:
			switch {
			case e.Kind == EventDelete:
				a.released = e.Time
			case e.Kind == EventSet && !bytes.Equal(e.Value, a.status.Holder):
				a.countPass(e)
			}
			a.free = !e.HasValue && e.Kind != EventSet
			a.status.Holder, a.status.Token = e.Value, e.Version
		}
	}
	return nil
}

// giveUp undoes the attempts that may have acquired the lock. It returns why the acquisition failed,
// or a *LockUnknownError if the attempts may not have been undone.
func (a *acquisition) giveUp(ctx context.Context, why error) error {
	if lost, ok := errors.AsType[*LostReplyError](why); ok {
		why = lost.Err // either undo succeeds, or the error below says that the outcome is unknown
	}
	if a.unconfirmed.n == 0 && !a.unconfirmed.held {
		return why
	}
	a.until = later(a.unconfirmed.until, time.Now()).Add(a.s.o.Timeout)
	if latest := a.began.Add(2 * wholeSeconds(a.s.o.Timeout)); a.first && a.until.After(latest) {
		a.until = latest // the watch has used part of the first timeout
	}
	limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.until)
	defer cancel()
	if a.again {
		_ = a.s.awaitExpiry(limited, a.unconfirmed) // an error changes nothing: the lock may be held
		return &LockUnknownError{
			Name: a.name, Holder: a.o.Holder, Until: later(a.unconfirmed.until, time.Now()).Add(a.timing.TTL),
			Err: fmt.Errorf("acquiring it again: %w", why),
		}
	}
	if err := a.s.undo(limited, a.name, a.o.Holder, a.timing, a.unconfirmed); err != nil {
		return &LockUnknownError{
			Name: a.name, Holder: a.o.Holder, Until: later(a.unconfirmed.until, time.Now()).Add(a.timing.TTL),
			Err: fmt.Errorf("acquiring it: %w; releasing it again: %w", why, cause(err)),
		}
	}
	return why
}

// cause returns the cause of a LostReplyError. It returns any other error unchanged.
func cause(err error) error {
	if lost, ok := errors.AsType[*LostReplyError](err); ok {
		return lost.Err
	}
	return err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
