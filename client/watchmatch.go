package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	s        *Session
	w        *Watch
	searches int       // number of searches that have begun
	began    time.Time // when the last of them began
	last     time.Time // when the last complete search began; zero before the first
	token    []byte    // of the page at which the first search continues; nil = begin a search
}

// forgetAfter is how long a key of the pattern must have been missing before the watch lets it go, unless more than
// manyKeys are missing. Otherwise keys that come and go would fill the memory in that time.
const forgetAfter = 10 * time.Second

// begin adds the first page of the keys that match when the watch begins. If there are more pages, run continues.
func (f *finder) begin(ctx context.Context) error {
	f.searches, f.began = 1, time.Now()
	page, err := As[ScanResult](f.s.Do(ctx, Scan(f.w.o.Match, nil)))
	if err != nil {
		return &ScanError{f.w.o.Match, err}
	}
	f.w.list(page.Keys, f.searches, time.Time{}, false)
	if f.token = page.Next; f.token == nil {
		f.last = f.began
	}
	f.w.looking = f.token != nil
	return nil
}

// look continues the first search, or makes another one, and adds the keys that it lists page by page.
func (f *finder) look(ctx context.Context) error {
	if f.token == nil {
		f.searches++
		f.began = time.Now()
	}
	w, token, search, since := f.w, f.token, f.searches, f.last
	f.token = nil
	for page, err := range f.s.ScanFrom(ctx, w.o.Match, token) {
		if err != nil {
			return &ScanError{w.o.Match, err}
		}
		w.v.post(func() { w.v.add(w, page.Keys, search, since) })
	}
	f.last = f.began
	last := f.last
	w.v.post(func() { w.v.looked(w, search, last) })
	return nil
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
	for f.token != nil || wait.For(ctx, f.w.o.Rescan) {
		if f.w.Trouble() != nil {
			f.token = nil // there is no connection to search over
			continue
		}
		if err := f.look(ctx); err != nil && ctx.Err() == nil && f.w.Trouble() == nil {
			f.w.unaudited(err)
		}
	}
}

// list records that a search listed keys, and returns those that are new to the watch. since is when the last search
// that did not list them began; zero = none. The watch holds back the events of a new key until it has been read.
func (w *Watch) list(keys []string, search int, since time.Time, uncounted bool) (fresh []string) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if k := w.keys[key]; k != nil {
			k.listed = search
			continue
		}
		last, refused := w.refused[key]
		if w.refused[key] = max(last, search); refused {
			continue
		}
		if err := w.v.s.checkWatch(key); err != nil {
			w.push(Event{Kind: EventError, Key: key, Time: time.Now(), Err: err})
			continue
		}
		delete(w.refused, key)
		w.keys[key] = &watchedKey{matched: true, listed: search, pending: &pending{found: since, uncounted: uncounted}}
		fresh = append(fresh, key)
	}
	return fresh
}

// addNamed adds a key that the caller named. It returns false if a search has added the key already.
func (w *Watch) addNamed(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.keys[key]; k != nil {
		k.matched = false
		return false
	}
	w.keys[key] = &watchedKey{pending: &pending{}}
	return true
}

// add adds the keys of a page that a search listed to a watch. See list.
func (v *watcher) add(w *Watch, keys []string, search int, since time.Time) {
	if _, ok := v.watches[w]; !ok {
		return
	}
	uncounted := v.conn != nil && !since.IsZero()
	for _, key := range w.list(keys, search, since, uncounted) {
		g := v.register(key, w)
		if v.conn == nil {
			continue // read with the other keys, on the next connection
		}
		if !uncounted {
			w.unread++
		}
		w.want.reads = append(w.want.reads, g)
	}
	v.ask(w)
}

// looked handles the end of a search that began at the time last. It lets go of keys that the search did not list, and that have been
// missing for forgetAfter or are many. If such a key comes back, it is found again.
func (v *watcher) looked(w *Watch, search int, last time.Time) {
	if _, ok := v.watches[w]; !ok {
		return
	}
	w.looking = false
	if v.conn == nil {
		return
	}
	v.checkRead(w)
	if w.unread > 0 {
		return
	}
	forgotten := w.forget(search, last)
	for _, key := range forgotten {
		if g := v.s.routes[key]; g != nil {
			if v.unregister(g, w) {
				v.countAudited(w, nil)
			}
			v.enqueue(g)
		}
	}
	if w.most = max(w.most, len(w.keys)+len(forgotten)); len(w.keys) < w.most/4 {
		v.shed = v.shed || w.most > manyKeys
		w.mu.Lock()
		w.keys = shrunk(w.keys)
		w.mu.Unlock()
		w.most = len(w.keys)
	}
}

// forget removes keys as described at looked, and returns them.
func (w *Watch) forget(search int, last time.Time) (forgotten []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.refused, func(_ string, listed int) bool { return listed < search })
	var missing []string
	for key, k := range w.keys {
		if k.matched && k.listed < search && k.pending == nil && !k.present {
			missing = append(missing, key)
		}
	}
	before := time.Now().Add(-cmp.Or(w.o.forgetAfter, forgetAfter))
	if len(missing) > manyKeys || last.Before(before) {
		before = last
	}
	for _, key := range missing {
		if w.keys[key].news().gone.Before(before) {
			delete(w.keys, key)
			forgotten = append(forgotten, key)
		}
	}
	return forgotten
}

// shrunk returns a copy of m that is no larger than necessary: a map keeps its size when keys are deleted.
func shrunk[V any](m map[string]V) map[string]V {
	small := make(map[string]V, len(m))
	maps.Copy(small, m)
	return small
}
