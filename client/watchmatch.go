package client

import (
	"context"
	"fmt"
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
	s     *Session
	w     *Watch
	known map[string]bool // the keys of the watch, including those that ended with an error
	last  time.Time       // when the last complete search began; zero before the first
}

// look returns the matching keys that are not known yet. After an error it returns the keys
// that were listed before the error.
func (f *finder) look(ctx context.Context) (fresh []string, err error) {
	began := time.Now()
	for page, err := range f.s.Scan(ctx, f.w.o.Match) {
		if err != nil {
			return fresh, &ScanError{f.w.o.Match, err}
		}
		for _, key := range page.Keys {
			if !f.known[key] {
				f.known[key] = true
				fresh = append(fresh, key)
			}
		}
	}
	f.last = began
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
		w.expect(key)
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
	}
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
	w.names = append(w.names, key)
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
	w.keys[key] = &watchedKey{holding: true, found: since, uncounted: connected}
}

// refuse queues an event which says that a key cannot be watched because of err.
func (w *Watch) refuse(key string, err error) {
	defer w.wakeUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.push(Event{Kind: EventError, Key: key, Time: time.Now(), Err: err})
}
