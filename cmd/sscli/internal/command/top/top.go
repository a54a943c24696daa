package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wait"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

type flags struct {
	every config.Text
	limit int
}

const (
	defaultInterval = 5 * time.Second
	defaultLimit    = 1000
)

// New returns the command.
func New(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "top [PATTERN|KEY...]",
		Short:   "Show keys live in a table",
		GroupID: app.GroupDebug,
		Long: `Show keys in a table that changes as they do: value, when it was written, writes per
second, and of locks the holder and the lease as far as it can be seen. Without an operand
it shows all keys.

An operand with * ? or [ is a pattern, as in scan. The store does not announce new keys,
so a scan finds them, every 5s or --every. A broker that does not know SCAN can only show
keys that are named.

Keys: arrows select, Enter opens a key with its history since top began, its value and its
packets, / filters, s sorts, ? lists all keys, q goes back or quits. Ctrl-Z suspends top,
fg resumes it.

A value that is written again and again is taken for a lock, and the value for its holder.
The bar is full at a renewal and empty after three of the longest pauses that were seen: the
lease itself cannot be read.

top needs a terminal. For pipes there are scan and watch.`,
		Example:           "  sscli top\n  sscli top 'thermostat/*' setpoint",
		ValidArgsFunction: complete.Keys(a, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), a, f, args)
		},
	}
	fs := cmd.Flags()
	fs.Var(&f.every, "every", "`DURATION` between scans for new keys (default 5s)")
	fs.IntVar(&f.limit, "limit", defaultLimit, "show at most `N` keys that a scan found")
	return cmd
}

// isPattern reports whether an operand is a pattern of SCAN.
func isPattern(operand string) bool { return strings.ContainsAny(operand, "*?[") }

// check refuses what top cannot do.
func (f flags) check(a *app.App, operands []string) (interval time.Duration, err error) {
	interval = defaultInterval
	if f.every != "" {
		if interval, err = config.ParseDuration(string(f.every)); err != nil || interval < 100*time.Millisecond {
			return 0, fault.Usagef("--every %.32q: want a duration of at least 100ms, such as 2s", string(f.every))
		}
	}
	kind, _ := a.Env("TERM")
	const hint = "sscli scan lists keys, sscli watch KEY streams changes"
	switch {
	case f.limit < 1:
		return 0, fault.Usagef("--limit %d: want at least 1", f.limit)
	case slices.Contains(operands, ""):
		return 0, fault.Usagef("the key is empty, the store wants at least one byte")
	case a.Settings.Output != "" && a.Settings.Output != "human":
		return 0, &fault.UsageError{Err: fmt.Errorf("%s %.32q: top draws on a terminal and has no other form", a.Settings.Sources["output"], a.Settings.Output), Hint: hint}
	case !term.IsTerminal(int(a.Stdout.Fd())):
		return 0, &fault.UsageError{Err: errors.New("standard output is not a terminal, which top draws on"), Hint: hint}
	case kind == "dumb":
		return 0, &fault.UsageError{Err: errors.New("TERM=dumb: top draws on a terminal, which must be able to move the cursor"), Hint: hint}
	case a.Settings.Trace && term.IsTerminal(int(a.Stderr.Fd())):
		return 0, &fault.UsageError{Err: fmt.Errorf("%s: the packets would be printed over the table", a.Settings.Sources["trace"]), Hint: "--trace-file FILE, or Enter on a key"}
	}
	return interval, nil
}

func run(ctx context.Context, a *app.App, f flags, operands []string) error {
	interval, err := f.check(a, operands)
	if err != nil {
		return err
	}
	if len(operands) == 0 {
		operands = []string{"*"}
	}
	var named []string
	m := newModel("")
	m.tapped = a.Shell == nil
	for _, o := range operands {
		if isPattern(o) {
			m.patterns = append(m.patterns, o)
		} else {
			named = append(named, o)
		}
	}
	if len(m.patterns) > 0 {
		m.interval = interval
	}
	m.title = "embedded"
	if !a.Settings.Embedded {
		m.title = format.Escape(a.Settings.URL())
	}
	return a.WithBroker(func(o client.Options) error {
		t := newTap()
		o.Trace = both(o.Trace, t.packet)
		limited, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		return a.Connect(limited, o, func(s *client.Session) error {
			l := &live{
				session: s, model: m, tap: t, limit: f.limit,
				events: make(chan client.Event, 256), scans: make(chan scanned), joins: make(chan joined), faults: make(chan error, 1),
				keys: make(chan []byte), jobs: make(chan terminal.Job),
			}
			return l.run(ctx, a, named)
		})
	})
}

// both returns a trace for two.
func both(first, second func(mqtt.Event)) func(mqtt.Event) {
	if first == nil {
		return second
	}
	return func(e mqtt.Event) {
		first(e)
		second(e)
	}
}

// live is top while it runs. One goroutine owns the model; the others send to it.
type live struct {
	session *client.Session
	model   *model
	tap     *tap
	limit   int
	running sync.WaitGroup

	events chan client.Event
	scans  chan scanned
	joins  chan joined
	faults chan error // why there can be no more events
	keys   chan []byte
	jobs   chan terminal.Job

	watched map[string]bool // keys that are watched, or about to be
	batches []*batch
}

// A batch is keys that are watched together.
type batch struct {
	watch *client.Watch
	keys  []string
	named bool
}

// scanned is the outcome of a scan.
type scanned struct {
	keys []string
	err  error
}

// joined is the outcome of beginning to watch.
type joined struct {
	batch *batch
	err   error
}

// frame is the shortest time between two screens.
const frame = 100 * time.Millisecond

// run shows the keys until the user quits, or something ends it. The screen is then as it
// was, also after a panic.
func (l *live) run(ctx context.Context, a *app.App, named []string) (err error) {
	l.watched = make(map[string]bool)
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() {
		cancel(errQuit)
		l.running.Wait()
		l.leave()
	}()
	s, err := openScreen(a.Stdout, a.UsesColor())
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.close())
		}
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	defer terminal.WatchJob(l.jobs)()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		if err := s.keys.Read(func(b []byte) bool { return send(ctx, l.keys, b) }); err != nil && ctx.Err() == nil {
			l.fail(err)
		}
	}()
	defer func() {
		cancel(errQuit)
		if s.keys.Interrupt() {
			<-reading
		}
	}()
	if len(named) > 0 {
		l.watch(ctx, named, true)
	}
	if len(l.model.patterns) > 0 {
		l.start(ctx, func() error { return l.scan(ctx) })
	}
	return l.loop(ctx, s)
}

// errQuit is the cause of the end when the user quits.
var errQuit = errors.New("quit")

// start runs f in a goroutine of its own, which run waits for. Its error ends top, and its
// panic too, which run then has.
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

func (l *live) fail(err error) {
	select {
	case l.faults <- err:
	default: // another one came first
	}
}

// send sends unless ctx ends, which it reports.
func send[T any](ctx context.Context, c chan<- T, v T) (sent bool) {
	select {
	case c <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// loop handles what comes, and draws.
func (l *live) loop(ctx context.Context, s *screen) error {
	m := l.model
	var typed []byte
	tick := time.NewTicker(frame)
	defer tick.Stop()
	dirty, drawn := true, time.Time{}
	draw := func() error {
		now := time.Now()
		dirty, drawn = false, now
		for _, p := range l.tap.take() {
			if r := m.rows[p.key]; r != nil {
				r.packets = keepLast(append(r.packets, p.text), maxPackets)
			}
		}
		m.stillAway(l.trouble())
		return s.draw(func(width, height int) []line { return m.view(width, height, now) })
	}
	if err := draw(); err != nil {
		return &fault.OutputError{Err: err}
	}
	for {
		var act action
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-l.faults:
			return err
		case e := <-l.events:
			m.happened(e)
			dirty = true
		case sc := <-l.scans:
			if err := l.scanned(ctx, sc); err != nil {
				return err
			}
			dirty = true
		case j := <-l.joins:
			l.joined(ctx, j)
			dirty = true
		case b := <-l.keys:
			var keys []key
			keys, typed = parseKeys(append(typed, b...))
			for _, k := range keys {
				if act = m.typed(k, time.Now()); act != actNothing {
					break
				}
			}
			dirty = true
		case job := <-l.jobs:
			switch job {
			case terminal.JobStop:
				act = actSuspend
			case terminal.JobContinued: // after a stop that could not be caught
				if err := s.enter(); err != nil {
					return &fault.OutputError{Err: err}
				}
			}
			dirty = true
		case <-tick.C:
			dirty = dirty || time.Since(drawn) >= time.Second // ages change
			if !dirty {
				continue
			}
			if err := draw(); err != nil {
				return &fault.OutputError{Err: err}
			}
		}
		switch act {
		case actQuit:
			return nil
		case actInterrupt:
			return &signals.Interrupted{Signal: syscall.SIGINT}
		case actSuspend:
			if err := s.suspend(); err != nil {
				return &fault.OutputError{Err: err}
			}
		case actRedraw:
			s.drawn = nil
		}
	}
}

// scan looks for keys until ctx ends.
func (l *live) scan(ctx context.Context) error {
	for {
		var sc scanned
		for _, p := range l.model.patterns {
			for page, err := range l.session.Scan(ctx, p) {
				sc.keys, sc.err = append(sc.keys, page.Keys...), errors.Join(sc.err, err)
			}
		}
		send(ctx, l.scans, sc)
		if refused, ok := errors.AsType[*wire.StoreError](sc.err); ok && refused.Kind() == wire.ErrorUnknownCommand {
			return nil
		}
		if !wait.For(ctx, l.model.interval) {
			return nil
		}
	}
}

// scanned takes the outcome of a scan. The error ends top.
func (l *live) scanned(ctx context.Context, sc scanned) error {
	m := l.model
	if refused, ok := errors.AsType[*wire.StoreError](sc.err); ok && refused.Kind() == wire.ErrorUnknownCommand {
		if len(l.watched) == 0 {
			return &fault.NoScanError{Err: sc.err}
		}
		m.noScan = true
		return nil
	}
	m.scanErr = ""
	if sc.err != nil {
		if client.IsPermanent(sc.err) {
			return sc.err
		}
		m.scanErr = fault.Message(sc.err)
	} else {
		m.scanned = time.Now()
	}
	slices.Sort(sc.keys)
	m.left = 0
	var fresh []string
	for _, k := range slices.Compact(sc.keys) {
		switch {
		case l.watched[k]:
		case len(l.watched)+len(fresh) >= l.limit:
			m.left++
		default:
			fresh = append(fresh, k)
		}
	}
	if len(fresh) > 0 {
		l.watch(ctx, fresh, false)
	}
	l.forget(time.Now())
	return nil
}

// trouble returns the newest error of an outage, or nil. All watches have one connection.
func (l *live) trouble() error {
	for _, b := range l.batches {
		if err := b.watch.Trouble(); err != nil {
			return err
		}
	}
	return nil
}

// watch begins to watch keys.
func (l *live) watch(ctx context.Context, keys []string, named bool) {
	for _, k := range keys {
		l.watched[k] = true
		l.model.add(k)
	}
	b := &batch{keys: keys, named: named}
	l.start(ctx, func() error {
		w, err := l.session.Watch(ctx, keys, client.WatchOptions{})
		b.watch = w
		send(ctx, l.joins, joined{b, err})
		if err != nil {
			return nil
		}
		for {
			e, err := w.Next(ctx)
			switch {
			case errors.Is(err, client.ErrClosed), fault.IsA[*wire.StoreError](err): // an event has said so
				return nil
			case err != nil:
				return err
			}
			send(ctx, l.events, e)
		}
	})
}

// joined takes the outcome of beginning to watch. If the store refuses one key it refuses
// them all: they are tried one by one.
func (l *live) joined(ctx context.Context, j joined) {
	if j.err == nil {
		l.batches = append(l.batches, j.batch)
		return
	}
	b := j.batch
	refused := fault.IsA[*wire.StoreError](j.err)
	switch {
	case errors.Is(j.err, errAgain):
		l.watch(ctx, b.keys, b.named)
		return
	case refused && len(b.keys) > 1:
		half := len(b.keys) / 2
		l.watch(ctx, b.keys[:half], b.named)
		l.watch(ctx, b.keys[half:], b.named)
		return
	case !refused && client.IsPermanent(j.err):
		l.fail(j.err)
		return
	}
	why := fault.Message(j.err)
	if said, ok := errors.AsType[*wire.StoreError](j.err); ok {
		why = "refused: " + said.Text
	}
	l.model.refuse(b.keys, why)
	switch {
	case refused: // it would be again
	case b.named:
		l.start(ctx, func() error {
			if wait.For(ctx, retryPause) {
				send(ctx, l.joins, joined{&batch{keys: b.keys, named: true}, errAgain})
			}
			return nil
		})
	default: // the next scan finds them
		for _, k := range b.keys {
			delete(l.watched, k)
		}
	}
}

// errAgain says that the keys must be tried again.
var errAgain = errors.New("again")

// retryPause is the time between two attempts to watch named keys.
const retryPause = time.Second

// forget drops keys that are gone for a while and that only a scan had found. Keys that are
// watched together are dropped together.
func (l *live) forget(now time.Time) {
	gone := func(k string) bool {
		r := l.model.rows[k]
		return r != nil && r.read && !r.found && now.Sub(r.changed) > forgotten
	}
	l.batches = slices.DeleteFunc(l.batches, func(b *batch) bool {
		if b.named || slices.ContainsFunc(b.keys, func(k string) bool { return !gone(k) }) {
			return false
		}
		for _, k := range b.keys {
			delete(l.model.rows, k)
			delete(l.watched, k)
		}
		l.running.Go(func() { _ = b.watch.Close() })
		return true
	})
}

// leave ends the watches at the store. The registrations end with the connection in any case.
func (l *live) leave() {
	var leaving sync.WaitGroup
	for _, b := range l.batches {
		leaving.Go(func() { _ = b.watch.Close() })
	}
	leaving.Wait()
}
