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
	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/screen"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/trace"
)

// A live is top while it runs. The goroutine of loop owns the model and the maps; the others send
// to it.
type live struct {
	session *client.Session
	model   *model
	packets *trace.KeyLog
	limit   int // of keys that a scan found
	running sync.WaitGroup

	events  chan client.Event
	scans   chan scanResult
	watches chan watchResult
	faults  chan error // why top must end
	typed   chan []byte
	jobs    chan terminal.Job

	named   map[string]bool          // keys that are operands
	watched map[string]*client.Watch // by key; nil = the watch is being made, or was refused
}

// A scanResult is the outcome of a scan.
type scanResult struct {
	keys []string
	err  error
}

// A watchResult is the outcome of an attempt to watch a key, or the end of a watch.
type watchResult struct {
	key   string
	watch *client.Watch
	err   error
}

// run shows the keys until the user quits or an error ends top. It restores the terminal, even
// after a panic.
func (l *live) run(ctx context.Context, a *app.App) (err error) {
	l.watched = make(map[string]*client.Watch)
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		l.running.Wait()
	}()
	s, err := screen.Open(a.Stdout, a.UsesColor())
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
		if err := s.Read(func(b []byte) bool { return send(ctx, l.typed, b) }); err != nil && ctx.Err() == nil {
			l.fail(err)
		}
	}()
	defer func() {
		cancel()
		if s.Interrupt() {
			<-reading
		}
	}()
	for key := range l.named {
		l.watch(ctx, key)
	}
	if len(l.model.patterns) > 0 {
		l.start(ctx, func() error { return l.scan(ctx) })
	}
	return l.loop(ctx, s)
}

// start runs f in a goroutine, which run waits for. An error or a panic of f ends top.
func (l *live) start(ctx context.Context, f func() error) {
	l.running.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				l.fail(fmt.Errorf("internal error: %v", p))
			}
		}()
		if err := f(); err != nil && ctx.Err() == nil {
			l.fail(err)
		}
	})
}

// fail ends top with an error, unless an earlier one already does.
func (l *live) fail(err error) {
	select {
	case l.faults <- err:
	default:
	}
}

// send sends a value, and reports false if ctx ended first.
func send[T any](ctx context.Context, c chan<- T, v T) bool {
	select {
	case c <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// frameInterval is the shortest time between two screens.
const frameInterval = 100 * time.Millisecond

// loop handles events, scans, keys and signals, and draws.
func (l *live) loop(ctx context.Context, s *screen.Screen) error {
	var pending []byte // of a key that is not complete
	tick := time.NewTicker(frameInterval)
	defer tick.Stop()
	drawn := time.Now()
	if err := l.draw(s); err != nil {
		return &fault.OutputError{Err: err}
	}
	for dirty := false; ; {
		act := actNothing
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-l.faults:
			return err
		case <-tick.C:
			if dirty || time.Since(drawn) >= time.Second { // ages change
				dirty, drawn = false, time.Now()
				err = l.draw(s)
			}
			if err != nil {
				return &fault.OutputError{Err: err}
			}
			continue
		case e := <-l.events:
			l.model.handleEvent(e)
		case r := <-l.scans:
			if err := l.handleScan(ctx, r); err != nil {
				return err
			}
		case r := <-l.watches:
			l.handleWatch(r)
		case b := <-l.typed:
			var keys []screen.Key
			keys, pending = screen.ParseKeys(append(pending, b...))
			for i := 0; i < len(keys) && act == actNothing; i++ {
				act = l.model.handleKey(keys[i], time.Now())
			}
		case job := <-l.jobs:
			switch job {
			case terminal.JobStop:
				act = actSuspend
			case terminal.JobContinued: // perhaps after SIGSTOP, which cannot be caught
				err = s.Enter()
			}
		}
		dirty = true
		switch act {
		case actQuit:
			return nil
		case actInterrupt:
			return &signals.Interrupted{Signal: syscall.SIGINT}
		case actSuspend:
			err = s.Suspend()
		case actRedraw:
			s.Redraw()
		}
		if err != nil {
			return &fault.OutputError{Err: err}
		}
	}
}

// draw draws the screen.
func (l *live) draw(s *screen.Screen) error {
	for _, p := range l.packets.Drain() {
		if r := l.model.rows[p.Key]; r != nil {
			r.packets = keepLast(append(r.packets, p.Text), maxPackets)
		}
	}
	for _, w := range l.watched {
		if w != nil { // all watches share a connection
			l.model.noteTrouble(w.Trouble())
			break
		}
	}
	now := time.Now()
	return s.Draw(func(width, height int) []screen.Line { return l.model.view(width, height, now) })
}

// scan scans for new keys at each interval, until ctx ends.
func (l *live) scan(ctx context.Context) error {
	for {
		var r scanResult
		for _, p := range l.model.patterns {
			for page, err := range l.session.Scan(ctx, p) {
				r.keys, r.err = append(r.keys, page.Keys...), errors.Join(r.err, err)
			}
		}
		send(ctx, l.scans, r)
		if hasNoScan(r.err) || !wait.For(ctx, l.model.interval) {
			return nil
		}
	}
}

// hasNoScan reports whether an error says that the broker has no SCAN.
func hasNoScan(err error) bool {
	refused, ok := errors.AsType[*wire.StoreError](err)
	return ok && refused.Kind() == wire.ErrorUnknownCommand
}

// handleScan handles the outcome of a scan. An error ends top.
func (l *live) handleScan(ctx context.Context, r scanResult) error {
	m := l.model
	m.scanErr = ""
	switch {
	case hasNoScan(r.err) && len(l.watched) == 0:
		return &fault.NoScanError{Err: r.err}
	case hasNoScan(r.err):
		m.noScan = true
		return nil
	case r.err == nil:
		m.scanned = time.Now()
	case client.IsPermanent(r.err):
		return r.err
	default:
		m.scanErr = fault.Message(r.err)
	}
	m.unwatched = 0
	slices.Sort(r.keys)
	for _, key := range slices.Compact(r.keys) {
		if _, known := l.watched[key]; known {
			continue
		}
		if len(l.watched) < l.limit {
			l.watch(ctx, key)
		} else {
			m.unwatched++
		}
	}
	l.forget()
	return nil
}

// forget drops keys that were deleted long ago, unless they are operands.
func (l *live) forget() {
	for key, w := range l.watched {
		if w != nil && !l.named[key] && l.model.isForgotten(key, time.Now()) {
			delete(l.model.rows, key)
			delete(l.watched, key)
			l.running.Go(func() { _ = w.Close() })
		}
	}
}

// watch starts watching a key.
func (l *live) watch(ctx context.Context, key string) {
	l.watched[key] = nil
	l.model.add(key)
	l.start(ctx, func() error { return l.follow(ctx, key) })
}

// follow watches a key and sends its events, until ctx ends. If the watch cannot be made, follow
// tries again for an operand, unless the store refuses it. Other keys are left to the next scan. An
// error ends top.
func (l *live) follow(ctx context.Context, key string) error {
	w, err := l.session.Watch(ctx, []string{key}, client.WatchOptions{})
	for ; err != nil; w, err = l.session.Watch(ctx, []string{key}, client.WatchOptions{}) {
		if client.IsPermanent(err) {
			return err
		}
		send(ctx, l.watches, watchResult{key: key, err: err})
		if fault.IsA[*wire.StoreError](err) || !l.named[key] || !wait.For(ctx, time.Second) {
			return nil
		}
	}
	defer func() { _ = w.Close() }()
	send(ctx, l.watches, watchResult{key: key, watch: w})
	for {
		e, err := w.Next(ctx)
		switch {
		case errors.Is(err, client.ErrClosed): // by forget
			return nil
		case fault.IsA[*wire.StoreError](err):
			send(ctx, l.watches, watchResult{key: key, err: err})
			return nil
		case err != nil:
			return err
		}
		send(ctx, l.events, e)
	}
}

// handleWatch handles the outcome of an attempt to watch a key, or the end of a watch.
func (l *live) handleWatch(r watchResult) {
	l.watched[r.key] = r.watch
	if r.err == nil {
		return
	}
	row := l.model.add(r.key)
	if refused, ok := errors.AsType[*wire.StoreError](r.err); ok {
		row.err = "refused: " + refused.Text
		return
	}
	row.err = fault.Message(r.err)
	if !l.named[r.key] {
		delete(l.watched, r.key) // the next scan finds it
	}
}
