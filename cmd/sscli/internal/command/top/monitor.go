package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/trace"
	"github.com/sscli/sscli/internal/keyboard"
	"github.com/sscli/sscli/internal/retry"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/internal/wire"
)

// A monitor runs top. Only the goroutine of loop uses the model and the maps, except for the fields
// patterns, interval and named, which do not change. Other goroutines change the model and the maps
// with functions that they pass to the method change.
type monitor struct {
	session *client.Session
	model   *model
	packets *trace.KeyLog
	limit   int // maximum number of watched keys, not counting named

	named   map[string]bool          // keys that are operands
	watched map[string]*client.Watch // watches by key; nil = not confirmed yet, or refused
	decoder keyboard.Decoder

	changes chan func()
	jobs    chan terminal.Job
	running sync.WaitGroup
	end     context.CancelCauseFunc // ends top; the cause is an error, or errQuit
}

// errQuit is the cause of the end of top when the user quits.
var errQuit = errors.New("quit")

func newMonitor(s *client.Session, m *model, packets *trace.KeyLog, named map[string]bool, limit int) *monitor {
	return &monitor{
		session: s, model: m, packets: packets, named: named, limit: limit,
		watched: make(map[string]*client.Watch), changes: make(chan func(), 256), jobs: make(chan terminal.Job),
		decoder: keyboard.Decoder{LoneEscape: true},
	}
}

// run shows the keys until the user quits or an error ends top. It restores the terminal, even
// after a panic.
func (l *monitor) run(ctx context.Context, a *app.App) (err error) {
	ctx, l.end = context.WithCancelCause(ctx)
	defer func() {
		l.end(nil)
		l.running.Wait()
	}()
	s, err := terminal.OpenScreen(a.Stdout, a.UsesColor())
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	defer terminal.WatchJob(l.jobs)()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		err := s.Read(func(b []byte) bool { return l.change(ctx, func() { l.typed(s, b) }) })
		if err != nil {
			l.end(err)
		}
	}()
	defer func() {
		l.end(nil)
		if s.Interrupt() {
			<-reading
		}
	}()
	for key := range l.named {
		l.watch(ctx, key)
	}
	if len(l.model.patterns) > 0 {
		store := exchange.NewBulk(a, l.session)
		store.Retry.Outage = app.Outage{} // messages would be printed over the screen
		l.start(func() error { return l.scan(ctx, store) })
	}
	if err := l.loop(ctx, s); err != errQuit {
		return err
	}
	return nil
}

// start calls f in a goroutine that run waits for. An error or a panic of f ends top.
func (l *monitor) start(f func() error) {
	l.running.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				l.end(fmt.Errorf("internal error: %v", p))
			}
		}()
		if err := f(); err != nil {
			l.end(err)
		}
	})
}

// change passes f to loop, which calls f. It returns false if ctx ends first.
func (l *monitor) change(ctx context.Context, f func()) bool {
	select {
	case l.changes <- f:
		return true
	case <-ctx.Done():
		return false
	}
}

// frameInterval is the minimum time between two redraws.
const frameInterval = 100 * time.Millisecond

// loop draws the screen and calls the functions passed to change, until ctx ends. It returns the cause
// of ctx.
func (l *monitor) loop(ctx context.Context, s *terminal.Screen) error {
	tick := time.NewTicker(frameInterval)
	defer tick.Stop()
	drawn := time.Now()
	l.draw(s)
	for dirty := false; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if dirty || time.Since(drawn) >= time.Second { // also redraw each second, because the screen shows ages
				dirty, drawn = false, time.Now()
				l.draw(s)
			}
			continue
		case change := <-l.changes:
			change()
		case job := <-l.jobs:
			switch job {
			case terminal.JobStop:
				l.check(s.Suspend())
			case terminal.JobContinued: // also after SIGSTOP, which comes without a JobStop
				l.check(s.Enter())
			}
		}
		dirty = true
	}
}

// check ends top with err, an error of the terminal, unless err is nil.
func (l *monitor) check(err error) {
	if err != nil {
		l.end(fault.Output(err))
	}
}

func (l *monitor) typed(s *terminal.Screen, b []byte) {
	for _, k := range l.decoder.Decode(b) {
		if k >= keyboard.Alt { // ESC and a character, typed quickly
			l.press(s, keyboard.Escape)
			k -= keyboard.Alt
		}
		l.press(s, k)
	}
}

func (l *monitor) press(s *terminal.Screen, k keyboard.Key) {
	switch k {
	case keyboard.Interrupt:
		l.end(&signals.Interrupted{Signal: syscall.SIGINT})
	case ctrlZ:
		l.check(s.Suspend())
	case ctrlL:
		s.Redraw()
	default:
		if l.model.handleKey(k, time.Now()) {
			l.end(errQuit)
		}
	}
}

// draw draws the model, including the newest packets.
func (l *monitor) draw(s *terminal.Screen) {
	for _, p := range l.packets.Drain() {
		if r := l.model.rows[p.Key]; r != nil {
			r.packets = keepLast(append(r.packets, p.Text), maxPackets)
		}
	}
	for _, w := range l.watched {
		if w != nil { // one watch is enough, because all share a connection
			l.model.noteTrouble(w.Trouble())
			break
		}
	}
	now := time.Now()
	l.check(s.Draw(func(width, height int) []terminal.ScreenLine { return l.model.view(width, height, now) }))
}

// scan looks for new keys at each interval, until ctx ends. It shows the keys of each page before it
// requests the next. It returns early if the broker has no SCAN.
func (l *monitor) scan(ctx context.Context, store *exchange.Store) error {
	for {
		known := make(exchange.Seen) // patterns may overlap, and the store may list a key twice
		more := 0
		var err error
		for _, p := range l.model.patterns {
			for page, bad := range store.Pages(ctx, p) {
				err = errors.Join(err, bad)
				keys := slices.DeleteFunc(page.Keys, func(key string) bool { return !known.Add(key) })
				l.change(ctx, func() { more += l.found(ctx, keys) })
			}
		}
		l.change(ctx, func() { l.scanned(more, err) })
		if hasNoScan(err) || !wait.For(ctx, l.model.interval) {
			return nil
		}
	}
}

func hasNoScan(err error) bool {
	refused, ok := errors.AsType[*wire.StoreError](err)
	return ok && refused.Kind() == wire.ErrorUnknownCommand
}

// found watches the keys of a page of a scan. It returns the number of keys that are not watched because of
// the limit.
func (l *monitor) found(ctx context.Context, keys []string) (unwatched int) {
	for _, key := range keys {
		if _, known := l.watched[key]; known {
			continue
		}
		if len(l.watched)-len(l.named) < l.limit {
			l.watch(ctx, key)
		} else {
			unwatched++
		}
	}
	return unwatched
}

// scanned handles the end of a scan: the number of keys that are not watched because of the limit, and the
// error, if any.
func (l *monitor) scanned(unwatched int, err error) {
	m := l.model
	m.scanErr = ""
	switch {
	case hasNoScan(err) && len(l.watched) == 0:
		l.end(&fault.NoScanError{Err: err})
		return
	case hasNoScan(err):
		m.noScan = true
		return
	case err == nil:
		m.scanned = time.Now()
	case fault.IsRefused(err):
		l.end(err)
		return
	default:
		m.scanErr = fault.Message(err)
	}
	m.unwatched = unwatched
	l.forget()
}

// forget removes keys that were deleted more than a minute ago, except operands.
func (l *monitor) forget() {
	for key, w := range l.watched {
		r := l.model.rows[key]
		if w != nil && !l.named[key] && r.read && !r.found && time.Since(r.changed) > time.Minute {
			delete(l.model.rows, key)
			delete(l.watched, key)
			l.running.Go(func() { _ = w.Close() })
		}
	}
}

func (l *monitor) watch(ctx context.Context, key string) {
	l.watched[key] = nil
	l.model.add(key)
	l.start(func() error { return l.follow(ctx, key) })
}

// follow watches a key and handles its events until ctx ends. After a temporary failure to start the
// watch, follow tries again if the key is an operand; for any other key, the next scan tries again. A
// key that the store refuses to watch stays unwatched.
func (l *monitor) follow(ctx context.Context, key string) error {
	var w *client.Watch
	again := func(err error) bool {
		if fault.IsRefused(err) {
			return false
		}
		l.change(ctx, func() { l.unwatched(key, err) })
		return l.named[key] && !fault.IsA[*wire.StoreError](err)
	}
	err := retry.Do(ctx, retry.Options{For: retry.Forever, Longest: time.Second, Again: again}, func() (err error) {
		w, err = l.session.Watch(ctx, []string{key})
		return err
	})
	switch {
	case fault.IsRefused(err):
		return err
	case err != nil:
		return nil
	}
	defer func() { _ = w.Close() }()
	l.change(ctx, func() { l.watched[key] = w })
	for {
		e, err := w.Next(ctx)
		switch {
		case errors.Is(err, client.ErrClosed): // forget has closed the watch
			return nil
		case fault.IsA[*wire.StoreError](err):
			l.change(ctx, func() { l.unwatched(key, err) })
			return nil
		case err != nil:
			return err
		}
		l.change(ctx, func() { l.model.handleEvent(e) })
	}
}

// unwatched records why a key is not watched, for the screen to show.
func (l *monitor) unwatched(key string, err error) {
	l.watched[key] = nil
	row := l.model.add(key)
	if refused, ok := errors.AsType[*wire.StoreError](err); ok {
		row.err = "refused: " + refused.Text
		return
	}
	row.err = fault.Message(err)
	if !l.named[key] {
		delete(l.watched, key) // so that the next scan tries again
	}
}
