package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/sscli/sscli/internal/wait"
)

// DefaultRescan is how often a watch with a pattern looks for keys.
const DefaultRescan = 5 * time.Second

// A ScanError means that a watch could not look for the keys that match its pattern.
type ScanError struct {
	Pattern string
	Err     error
}

func (e *ScanError) Error() string { return fmt.Sprintf("scan %q: %v", e.Pattern, e.Err) }

func (e *ScanError) Unwrap() error { return e.Err }

// A finder looks for the keys that match the pattern of a watch. One goroutine uses it.
type finder struct {
	s    *Session
	w    *Watch
	last time.Time // when the last complete search began; zero before the first

	// known holds the keys of the watch, including those that ended with an error, and the number of the last
	// search that listed each; named for the keys that the caller named.
	known    map[string]int
	searches int
	most     int // the largest len(known) since known was made
}

// named marks a key that stays known for ever.
const named = math.MaxInt

// forgetAfter is how long a key of the pattern must have been missing before the watch lets it go, unless more than
// manyKeys are missing. Otherwise keys that come and go would fill the memory in that time.
const forgetAfter = 10 * time.Second

// look returns the matching keys that are not known yet. After an error it returns the keys
// that were listed before the error.
func (f *finder) look(ctx context.Context) (fresh []string, err error) {
	began := time.Now()
	f.searches++
	for page, err := range f.s.Scan(ctx, f.w.o.Match) {
		if err != nil {
			return fresh, &ScanError{f.w.o.Match, err}
		}
		for _, key := range page.Keys {
			last, known := f.known[key]
			if !known {
				fresh = append(fresh, key)
			}
			if last != named {
				f.known[key] = f.searches
			}
		}
	}
	f.last, f.most = began, max(f.most, len(f.known))
	return fresh, nil
}

// begin adds the keys that match when the watch begins.
func (f *finder) begin(ctx context.Context) error {
	w := f.w
	matches, err := f.look(ctx)
	if err != nil {
		return err
	}
	for _, key := range matches {
		if err := f.s.checkWatch(key); err != nil {
			w.refuse(key, err)
			continue
		}
		w.expect(key, true)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err // ErrOverflow if refuse has filled the buffer
}

// start makes the finder look for new keys until ctx ends.
func (f *finder) start(ctx context.Context) error {
	if !f.s.hold() {
		return ErrClosed
	}
	go func() {
		defer f.s.wg.Done()
		f.run(ctx)
	}()
	return nil
}

// run looks for new keys at the interval WatchOptions.Rescan until ctx ends.
func (f *finder) run(ctx context.Context) {
	for wait.For(ctx, f.w.o.Rescan) {
		if f.w.Trouble() != nil {
			continue // there is no connection to search over
		}
		since := f.last
		fresh, err := f.look(ctx)
		for _, key := range fresh {
			f.w.v.post(func() { f.w.v.add(f.w, key, since) })
		}
		if err != nil && ctx.Err() == nil && f.w.Trouble() == nil {
			f.w.unaudited(err)
		}
		if err == nil {
			f.forget(ctx)
		}
	}
}

// forget lets go of keys that the last search, which was complete, did not list, and that have been missing
// for forgetAfter or are many. If such a key comes back, it is found again.
func (f *finder) forget(ctx context.Context) {
	var missing []string
	for key, last := range f.known {
		if last < f.searches {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return
	}
	before := time.Now().Add(-cmp.Or(f.w.o.forgetAfter, forgetAfter))
	if len(missing) > manyKeys || f.last.Before(before) {
		before = f.last
	}
	forgotten := make(chan []string, 1)
	f.w.v.post(func() { forgotten <- f.w.v.forget(f.w, missing, before) })
	select {
	case keys := <-forgotten:
		for _, key := range keys {
			delete(f.known, key)
		}
		if len(f.known) < f.most/4 {
			many := f.most > manyKeys
			f.known = shrunk(f.known)
			f.most = len(f.known)
			f.w.v.post(func() { f.w.v.shrink(f.w, many) })
		}
	case <-ctx.Done():
	case <-f.w.v.done:
	}
}

// forget stops watching those of the keys that have been missing since before t. It returns them, and
// those that are not watched anyway.
func (v *watcher) forget(w *Watch, keys []string, t time.Time) (forgotten []string) {
	if _, ok := v.watches[w]; !ok || v.conn == nil || w.unread > 0 {
		return nil
	}
	for _, key := range keys {
		if !w.forget(key, t) {
			continue
		}
		forgotten = append(forgotten, key)
		if g := v.keys[key]; g != nil {
			if g.remove(w) {
				v.countAudited(w, nil)
			}
			v.enqueue(g)
		}
	}
	v.route(forgotten)
	return forgotten
}

// forget removes a key that has been missing since before t. It returns false if the key must stay.
func (w *Watch) forget(key string, t time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keys[key]
	if k == nil {
		return true
	}
	if !k.matched || k.holding || k.present || k.gone.IsZero() || !k.gone.Before(t) {
		return false
	}
	delete(w.keys, key)
	return true
}

// shrink gives up the memory of keys that were let go, perhaps of many: a map keeps its size when keys are
// deleted.
func (v *watcher) shrink(w *Watch, many bool) {
	v.shed = v.shed || many
	w.mu.Lock()
	w.keys = shrunk(w.keys)
	w.mu.Unlock()
	v.s.mu.Lock()
	v.s.routes = shrunk(v.s.routes)
	v.s.mu.Unlock()
}

// shrunk returns a copy of m that is no larger than necessary.
func shrunk[V any](m map[string]V) map[string]V {
	small := make(map[string]V, len(m))
	maps.Copy(small, m)
	return small
}

// add adds a key that a search found to a watch. since is when the last search that did not
// find the key began.
func (v *watcher) add(w *Watch, key string, since time.Time) {
	if _, ok := v.watches[w]; !ok {
		return
	}
	if err := v.s.checkWatch(key); err != nil {
		w.refuse(key, err)
		return
	}
	w.found(key, since, v.conn != nil)
	g := v.register(key, w)
	v.route([]string{key})
	if v.conn != nil {
		v.wantRead(g, w)
	}
}

// found adds a key, and holds back its events until it has been read. If connected is true, the key is
// read immediately; otherwise it is read with the other keys, on the next connection.
func (w *Watch) found(key string, since time.Time, connected bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[key] = &watchedKey{holding: true, found: since, uncounted: connected, matched: true}
}

// refuse queues an event which says that a key cannot be watched because of err.
func (w *Watch) refuse(key string, err error) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.push(Event{Kind: EventError, Key: key, Time: time.Now(), Err: err})
}
