package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/internal/redis"
	"github.com/sscli/sscli/internal/retry"
)

// A keyWatch is the watch of one key, for clients that subscribed to that key by name.
type keyWatch struct {
	begun  chan struct{}   // closed once the store has confirmed the watch or err is set
	err    error           // why the watch did not begin
	ctx    context.Context // Unwatch cancels it
	cancel context.CancelFunc
}

// Watch watches a key, unless the gateway already watches it. It returns once the store has confirmed
// the watch.
func (b *backend) Watch(ctx context.Context, key []byte) error {
	name := string(key)
	b.mu.Lock()
	if slices.Contains(b.listed, name) {
		defer b.mu.Unlock()
		return b.unwatched[name]
	}
	k := b.watches[name]
	if k != nil {
		b.mu.Unlock()
		select {
		case <-k.begun:
			return k.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	k = &keyWatch{begun: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(b.ctx)
	b.watches[name] = k
	b.mu.Unlock()
	defer close(k.begun)
	w, err := b.session.Watch(ctx, []string{name})
	if err != nil {
		b.forget(name, k)
		k.err = refusal(err)
		if _, ok := errors.AsType[*client.DialError](err); ok {
			k.err = unsent(err)
		}
		return k.err
	}
	b.running.Go(func() {
		err := b.report(k.ctx, w, func(string, error) {}) // the watch ends, because it has no other key
		b.forget(name, k)
		b.closeWatch(w)
		if k.ctx.Err() == nil {
			b.server.Lost([]byte(name), "the watch ended: "+err.Error())
		}
	})
	return nil
}

// Unwatch ends the watch that Watch began for a key.
func (b *backend) Unwatch(key []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.watches[string(key)]; k != nil {
		delete(b.watches, string(key))
		k.cancel()
	}
}

func (b *backend) isWatched(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watches[key] != nil || slices.Contains(b.listed, key)
}

// forget removes k, so that the next Watch of the key starts a new watch.
func (b *backend) forget(key string, k *keyWatch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watches[key] == k {
		delete(b.watches, key)
	}
}

// watchListed watches the keys of --watch until the backend is closed. It returns once the store has
// confirmed the watch.
func (b *backend) watchListed(ctx context.Context) error {
	w, err := b.session.Watch(ctx, b.listed)
	if err != nil {
		return err
	}
	b.running.Go(func() { b.keepWatching(b.listed, w) })
	return nil
}

// keepWatching reports the changes of keys of --watch, which w watches, until the backend is closed. When the
// store refuses one of the keys, or the watch ends, keepWatching disconnects the subscribers and watches
// again as soon as the store allows it.
func (b *backend) keepWatching(keys []string, w *client.Watch) {
	for {
		err := b.report(b.ctx, w, func(key string, err error) {
			keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == key })
			b.lose([]string{key}, err)
			b.running.Go(func() {
				if again := b.watchAgain([]string{key}); again != nil {
					b.keepWatching([]string{key}, again)
				}
			})
		})
		b.closeWatch(w)
		if b.ctx.Err() != nil || len(keys) == 0 {
			return
		}
		b.lose(keys, err)
		if w = b.watchAgain(keys); w == nil {
			return
		}
	}
}

// lose refuses new subscribers of keys of --watch, and disconnects the present ones, because the watch of the
// keys ended with err.
func (b *backend) lose(keys []string, err error) {
	b.log.Warn("the watch ended, trying again", "keys", keys, "error", err)
	b.mu.Lock()
	for _, key := range keys {
		b.unwatched[key] = refusal(err)
	}
	b.mu.Unlock()
	b.lost(keys, "the watch ended: "+err.Error())
}

// watchAgain watches keys of --watch again, as soon as the store allows it. It returns nil if the backend is
// closed first.
func (b *backend) watchAgain(keys []string) (w *client.Watch) {
	always := func(error) bool { return true }
	_ = retry.Do(b.ctx, retry.Options{For: retry.Forever, Again: always}, func() (err error) {
		if w, err = b.session.Watch(b.ctx, keys); err != nil {
			b.log.Debug("the keys of --watch are not watched, trying again", "keys", keys, "error", err)
		}
		return err
	})
	if w == nil {
		return nil
	}
	b.lost(keys, "the watch was interrupted") // clients may have subscribed to patterns meanwhile
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		delete(b.unwatched, key)
	}
	b.log.Info("the keys are watched again", "keys", keys)
	return w
}

func (b *backend) lost(keys []string, reason string) {
	for _, key := range keys {
		b.server.Lost([]byte(key), reason)
	}
}

func (b *backend) closeWatch(w *client.Watch) {
	if err := w.Close(); err != nil && b.ctx.Err() == nil {
		b.log.Debug("a watch could not be ended", "error", err)
	}
}

// report passes the changes of a watch to the server until the watch or ctx ends. It calls refused for a key
// that is no longer watched. It always returns an error, which says why the watch ended.
func (b *backend) report(ctx context.Context, w *client.Watch, refused func(key string, err error)) error {
	newest := make(map[string]client.Version) // the version in the last notification of each key
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return err
		}
		switch e.Kind {
		case client.EventInitial, client.EventResync:
			newest[e.Key] = e.Version
		case client.EventSet:
			newest[e.Key] = e.Version
			kind := redis.Stored
			if b.own.expires(e.Key, e.Version) {
				kind = redis.StoredTill
			}
			b.server.Changed(redis.Change{Key: []byte(e.Key), Kind: kind})
		case client.EventDelete:
			kind := redis.Deleted
			if b.own.expired(e.Key, newest[e.Key], e.Version, e.Time) {
				kind = redis.Expired
			}
			b.server.Changed(redis.Change{Key: []byte(e.Key), Kind: kind})
			delete(newest, e.Key)
		case client.EventGap:
			b.server.Lost([]byte(e.Key), gap(e))
		case client.EventError:
			refused(e.Key, e.Err)
		case client.EventOther:
			b.log.Warn("an unknown kind of notification", "key", e.Key, "word", e.Word)
		}
	}
}

// gap returns a text for the period in which changes were missed or may have been missed.
func gap(e client.Event) string {
	const clock = "15:04:05.000Z"
	may := "changes may have been missed"
	if e.Continuity == client.ContinuityLost {
		may = "changes were missed"
	}
	return fmt.Sprintf("%s from %s to %s", may, e.From.UTC().Format(clock), e.To.UTC().Format(clock))
}
