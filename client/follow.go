package client

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/sscli/sscli/internal/retry"
)

// Follow yields the value of a key, and then its newest value whenever it has changed, until ctx ends or the
// loop does. A missing key is a result whose Found is false. Values that were replaced before the loop asked
// for the next one are skipped, also after a lost connection; a [Watch] reports every change. An error, of
// [Session.Watch] or [Watch.Next], ends the iteration and is yielded last.
//
//	for now, err := range s.Follow(ctx, "setpoint") {
//		if err != nil { … }
//		fmt.Printf("%s\n", now.Value)
//	}
func (s *Session) Follow(ctx context.Context, key string) iter.Seq2[GetResult, error] {
	return func(yield func(GetResult, error) bool) {
		f := follower{s: s, key: key, yield: yield}
		for {
			err := f.watch(ctx)
			if f.over {
				return
			}
			if !errors.Is(err, ErrOverflow) { // else the loop was slow: the initial value of another watch is the newest
				yield(GetResult{}, err)
				return
			}
		}
	}
}

// A follower is the state of one [Session.Follow].
type follower struct {
	s     *Session
	key   string
	yield func(GetResult, error) bool
	last  GetResult // the last result
	begun bool      // last is set
	over  bool      // the loop has ended
}

// watch watches the key until the watch fails, or the loop ends.
func (f *follower) watch(ctx context.Context) error {
	w, err := f.s.Watch(ctx, []string{f.key})
	if err != nil {
		return err
	}
	defer w.closeWithin(ctx) // an error means that the registration ends with the connection
	var now GetResult
	fresh := false // now is newer than f.last
	for {
		e, err := w.Next(ctx)
		switch {
		case err != nil:
		case e.Kind == EventError:
			err = e.Err
		case e.Kind == EventSet && !e.HasValue:
			var got GetResult
			err = f.s.persist(ctx, retry.Options{Again: f.again}, func() (err error) {
				got, err = f.s.Get(ctx, f.key)
				return err
			})
			if err == nil {
				now, fresh = got, true
			}
		case e.Kind == EventInitial, e.Kind == EventResync, e.Kind == EventSet, e.Kind == EventDelete:
			now, fresh = GetResult{Value: e.Value, Found: e.HasValue}, true
			now.Version = e.Version
		}
		if fresh && (err != nil || !w.Ready()) { // Ready also reports the end of the watch
			fresh = false
			if !f.show(now) {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// again reports whether to read the key again after an error. The watch goes on after the same errors.
func (f *follower) again(err error) bool { return !f.s.isFinal(err) }

// show yields a result, unless it is the same as the last one. It returns false if the loop has ended.
func (f *follower) show(now GetResult) bool {
	same := f.begun && now.Found == f.last.Found &&
		(!now.Found || now.Version.Equal(f.last.Version) && string(now.Value) == string(f.last.Value))
	f.last, f.begun = now, true
	f.last.Value = bytes.Clone(now.Value) // the loop may change its own
	f.over = !same && !f.yield(now, nil)
	return !f.over
}
