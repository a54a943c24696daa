package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/internal/wire"
)

// A keeper repeats the round of a plan at an interval. It begins the next round early if a watched
// key leaves the state in which the last round left it, or after a lost connection.
//
// Each round starts a new watch, because a store that restarts while its broker keeps running forgets
// all watches.
type keeper struct {
	*plan
	every time.Duration

	outage    app.Outage
	unwatched bool                  // the user was warned that no keys are watched
	states    map[string]verb.State // the state in which the last round left each watched key, without the version
	dirty     map[string]struct{}   // keys that may differ from states; "" = the unwatched keys
}

// stateOf returns the state of a key without its version, because an event may lack the version.
func stateOf(found bool, value []byte) verb.State {
	return verb.StateOf(client.GetResult{Found: found, Value: value})
}

const (
	// minPause is the minimum time between the starts of two rounds, unless the interval is
	// shorter. It limits the load when another client keeps writing the same keys.
	minPause = time.Second
	// quietTime is how long the keeper waits for further changes after each change, so that one round
	// handles changes that come together. A key that keeps changing delays the round by at most minPause.
	quietTime = 50 * time.Millisecond
)

// run repeats the round until ctx ends, or until an error ends the command (see ends).
func (k *keeper) run(ctx context.Context) error {
	for first := true; ; first = false {
		began := time.Now()
		w, err := k.round(ctx, first)
		pause := k.every
		if err != nil && !errors.Is(err, fault.ErrNo) {
			if k.ends(ctx, err, first) {
				closeWatch(w)
				return err
			}
			if !fault.IsA[*fault.ExitError](err) || fault.IsA[*fault.UnknownError](err) || fault.IsA[*fault.NotAppliedError](err) {
				pause = min(minPause, k.every) // retry soon, unless the store refused single keys
			}
		}
		err = k.wait(ctx, w, began, time.Now().Add(pause))
		closeWatch(w)
		if err != nil {
			return err
		}
	}
}

// closeWatch closes w unless it is nil.
func closeWatch(w *client.Watch) {
	if w != nil {
		_ = w.Close() // after an error, the registrations end with the connection
	}
}

// round reads the sources, starts a watch and carries out a round. It returns the watch, which is nil
// if no keys are watched.
func (k *keeper) round(ctx context.Context, first bool) (w *client.Watch, err error) {
	if !first { // before the first round, flags.run has read the sources
		if err := k.open(ctx); err != nil {
			return nil, err
		}
	}
	if w, err = k.watch(ctx); err != nil {
		if ctx.Err() != nil || isOutage(err) {
			return nil, err
		}
		if !k.unwatched {
			k.app.Warn(fmt.Sprintf("the keys are not watched, but read every %v: %s", k.every, fault.Message(err)))
		}
		k.unwatched = true
	}
	r := k.newRound(true)
	r.onState = func(key string, now client.GetResult) {
		if _, watched := k.states[key]; watched {
			k.states[key] = stateOf(now.Found, now.Value)
		}
	}
	if err = r.run(ctx); err == nil || !isOutage(err) {
		k.outage.Over("")
	}
	return w, err
}

// isOutage reports whether err means that the broker or its store does not answer.
func isOutage(err error) bool {
	return fault.IsConnection(err) || fault.IsTimeout(err) || fault.IsA[*client.NoStoreError](err)
}

// watch watches the first keys of the sources, except keys that are too long for notifications. It
// returns nil if no keys remain. Even a few watched keys are enough to notice that the store was
// emptied.
func (k *keeper) watch(ctx context.Context) (*client.Watch, error) {
	k.states, k.dirty = make(map[string]verb.State), make(map[string]struct{})
	var keys []string
	for _, key := range k.set.First() {
		if len(key) <= wire.MaxNotifyKey(k.session.ClientID()) {
			keys = append(keys, key)
			k.states[key] = stateOf(false, nil)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, k.app.Timeout())
	defer cancel()
	return k.session.Watch(limited, keys)
}

// ends reports whether the error of a round ends the command. If not, ends prints the error.
func (k *keeper) ends(ctx context.Context, err error, first bool) bool {
	switch {
	case ctx.Err() != nil, fault.IsRefused(err), fault.IsA[*fault.OutputError](err), first && fault.IsA[*fault.UsageError](err):
		return true
	case isOutage(err) && !fault.IsA[*fault.ExitError](err):
		k.outage.Trouble(err, "trying again")
	default:
		k.app.Fault(err)
	}
	return false
}

// wait waits until the next round begins: at the time in due or, if a watched key changes, shortly
// after the change. While the connection is lost, wait keeps waiting. began is when the last round
// began.
func (k *keeper) wait(ctx context.Context, w *client.Watch, began, due time.Time) error {
	down := k.catchUp(ctx, w)
	pause := min(minPause, k.every)
	var latest time.Time // the next round begins no later, even if keys keep changing; zero = no key is dirty
	for {
		now, until := time.Now(), due
		if down || len(k.dirty) == 0 {
			latest = time.Time{}
		} else {
			if latest.IsZero() {
				latest = slices.MinFunc([]time.Time{due, now.Add(pause)}, time.Time.Compare)
			}
			until = began.Add(pause)
			if quiet := now.Add(quietTime); quiet.After(until) {
				until = quiet
			}
			until = slices.MinFunc([]time.Time{until, latest}, time.Time.Compare)
		}
		if !down && !now.Before(until) {
			return nil
		}
		e, err := k.next(ctx, w, until)
		switch {
		case err == nil:
			down = e.Kind == client.EventDown || down && e.Kind != client.EventUp
			k.note(e)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errDue) && !down:
			return nil
		case errors.Is(err, errDue):
			due = time.Now().Add(k.every) // an earlier EventUp starts the round sooner
		case fault.IsRefused(err):
			return err
		default: // the watch has ended
			w, down = nil, false
		}
	}
}

// catchUp notes the events that arrived during a round. If the connection is still lost, catchUp
// reports the outage and returns true. It does not report an outage that is already over, because
// the round has reported it.
func (k *keeper) catchUp(ctx context.Context, w *client.Watch) (down bool) {
	var lost error
	for w != nil && w.Ready() {
		e, err := w.Next(ctx)
		if err != nil {
			return false // wait calls Next, which returns the error again
		}
		switch e.Kind {
		case client.EventDown:
			down, lost = true, e.Err
		case client.EventUp:
			down = false
		}
		k.note(e)
	}
	if down {
		k.outage.Trouble(lost, "connecting again")
	}
	return down
}

// errDue means that the next round is due and no event has arrived.
var errDue = errors.New("the next round is due")

// next returns the next event, or errDue if no event arrives by the deadline in until.
func (k *keeper) next(ctx context.Context, w *client.Watch, until time.Time) (client.Event, error) {
	limited, cancel := context.WithDeadlineCause(ctx, until, errDue)
	defer cancel()
	if w == nil {
		<-limited.Done()
		return client.Event{}, context.Cause(limited)
	}
	return k.outage.Next(limited, w, k.app.Flush)
}

func (k *keeper) note(e client.Event) {
	switch e.Kind {
	case client.EventDown, client.EventGap, client.EventError:
		return
	case client.EventUp: // unwatched keys may have changed during the outage
		k.dirty[""] = struct{}{}
		return
	}
	if e.Kind == client.EventSet && !e.HasValue || stateOf(e.HasValue, e.Value) != k.states[e.Key] {
		k.dirty[e.Key] = struct{}{}
	} else {
		delete(k.dirty, e.Key)
	}
}
