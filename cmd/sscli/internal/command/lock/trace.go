package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/lock/locklog"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

type traceFlags struct {
	guards      []string
	ttl, forDur usage.Duration
	from, svg   config.File
	timeline    bool
	count       int
	names       []string
}

func newTrace(a *app.App) *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace NAME...",
		Short: "Watch locks and print what happens to them",
		Long: `Watch locks and print what happens to them: who acquired, renewed or released a lock, who
took it over from whom, and how long it was held or free. --timeline draws a chart at the
end.

A notification says only that a key was written, or is gone. trace infers from the time
since the last renewal whether the lease expired, and says so. If the lease did not
expire, the holder released the lock or somebody deleted its key. These two look the same:
trace prints released or deleted (in raw, json and template: released). Without renewals
it prints deleted, unless --ttl gives the length of the lease. In the human form, the
renewals of one holder share a line.

trace also watches the keys of --guards: for each write it shows who held the locks at
that time. Notifications do not say who wrote, or with which token.

--from reads a recording instead of connecting to a broker: what lock trace -o json or
watch -o json printed. Without NAME, it shows all keys of the recording.`,
		Example: `  sscli lock trace build --guards artifact --timeline    # until Ctrl-C
  sscli lock trace build -o json > build.jsonl
  sscli lock trace --from build.jsonl --svg build.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.names = args
			if err := f.check(); err != nil {
				return err
			}
			return runTrace(cmd.Context(), a, f)
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&f.guards, "guards", nil, "also show the writes of `KEY`, a key that the locks protect; may be repeated")
	fs.Var(f.ttl.Least(usage.Positive), "ttl", "the lease of the locks is `DURATION`, to tell a release from an expiry")
	fs.BoolVar(&f.timeline, "timeline", false, "draw a chart at the end: who held which lock when")
	fs.Var(&f.svg, "svg", "write the chart as a picture to `FILE`")
	fs.Var(&f.from, "from", "read a recording from `FILE`, or - for standard input, and connect to no broker")
	fs.Var(f.forDur.Least(usage.Positive), "for", "end after `DURATION` (default: until interrupted)")
	fs.IntVarP(&f.count, "count", "n", 0, "end after `COUNT` changes (0: no limit)")
	return cmd
}

func (f *traceFlags) check() error {
	f.names, f.guards = distinct(f.names), distinct(f.guards)
	for _, name := range f.names {
		if slices.Contains(f.guards, name) {
			return fault.Usagef("%s is a lock and --guards: use only one of them", format.Brief(name))
		}
	}
	switch {
	case len(f.names) == 0 && f.from == "":
		return fault.Usagef("missing NAME")
	case f.from != "" && f.forDur.Given():
		return fault.Usagef("--from and --for: use only one of them")
	case f.count < 0:
		return fault.Usagef("-n %d: must be 0 or more", f.count)
	}
	if f.svg != "" { // an error at the end would come too late
		if _, err := os.Stat(filepath.Dir(string(f.svg))); err != nil {
			return &fault.UsageError{Err: fmt.Errorf("--svg: %w", err)}
		}
	}
	return nil
}

// distinct returns names without repetitions, in their order.
func distinct(names []string) (all []string) {
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// runTrace prints what happens to the locks and, when the trace ends, the chart.
func runTrace(ctx context.Context, a *app.App, f traceFlags) error {
	t := &tracer{app: a, f: f, outage: app.Outage{Notify: a.Notify}, history: locklog.New(locklog.Options{Lease: f.ttl.Duration, Guards: f.guards}), merge: a.Output == "human"}
	if f.timeline || f.svg != "" {
		t.chart = &locklog.Chart{}
	}
	var err error
	if f.from != "" {
		err = t.read(ctx)
	} else {
		err = a.WithSession(ctx, func(s *client.Session, _ client.Options) error { return t.watch(ctx, s) })
	}
	t.clearLine()
	if fault.IsA[*fault.UsageError](err) || !t.began {
		return err
	}
	return t.finish(err)
}

type tracer struct {
	app     *app.App
	f       traceFlags
	history *locklog.History
	chart   *locklog.Chart // nil without --timeline and --svg
	merge   bool           // print the renewals of one holder as one line
	began   bool           // there was a statement
	ended   time.Time      // end of the recording; zero = a watch
	changes int
	outage  app.Outage
	refused error  // why the store refused to watch a key; the first such error
	endLine func() // clears the live line; nil = none

	mu       sync.Mutex
	renewals []format.LockEvent // the last renewal of each lock, if it has not been printed
}

var (
	errTimeOver     = errors.New("the time of --for is over")
	errCountReached = errors.New("the number of changes of -n is reached")
)

func (t *tracer) watch(ctx context.Context, s *client.Session) error {
	ctx, stop := terminal.UntilClosed(ctx, t.app.Stdout.File)
	defer stop()
	t.app.RememberKey(t.f.names...)
	w, err := s.Watch(ctx, append(slices.Clone(t.f.names), t.f.guards...))
	if errors.Is(err, terminal.ErrClosed) {
		return fault.Output(err)
	}
	if err != nil {
		return err
	}
	defer w.Close()
	t.app.Inform(t.waiting())
	if t.f.forDur.Given() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.f.forDur.Duration, errTimeOver)
		defer cancel()
	}
	for {
		if !w.Ready() {
			if err := t.app.Flush(); err != nil {
				return err
			}
			if len(t.renewals) > 0 && t.endLine == nil {
				_, t.endLine = t.app.Live(100*time.Millisecond, t.line)
			}
		}
		e, err := t.outage.Next(ctx, w, t.app.Flush)
		if err != nil {
			return err
		}
		if e.Kind == client.EventInitial && !e.HasValue && slices.Contains(t.f.names, e.Key) {
			t.app.NotePattern(e.Key, suggest.Try("`lock list PATTERN`"))
		}
		if e.Kind == client.EventError {
			_ = t.app.Flush() // print statements before the warning; the next Flush returns the error again
			t.app.Warn(fmt.Sprintf("%v; the other keys are still watched", e.Err))
			if t.refused == nil {
				t.refused = e.Err
			}
		}
		if err := t.handle(e); err != nil {
			return err
		}
	}
}

// waiting returns a text that says what the trace waits for, and what ends it.
func (t *tracer) waiting() string {
	text := "waiting for changes of lock " + format.Brief(t.f.names[0])
	if n := len(t.f.names); n > 1 {
		text = fmt.Sprintf("waiting for changes of %d locks", n)
	}
	switch {
	case t.f.forDur.Given():
		return text + " for " + t.f.forDur.Duration.String()
	case t.f.count > 0:
		return text // -n ends the trace
	}
	return text + "; Ctrl-C ends"
}

func (t *tracer) read(ctx context.Context) error {
	t.app.Signals.Arm()
	name := string(t.f.from)
	source, end, err := t.app.Open(ctx, name, "lock trace --from")
	if bad, ok := errors.AsType[*fault.UsageError](err); ok {
		bad.Err = fmt.Errorf("--from: %w", bad.Err)
	}
	if err != nil {
		return err
	}
	defer end()
	name = format.Location(name, 0, 0)
	lines, stop := lineinput.Read(source, lineinput.Options{JSON: true, From: 1})
	defer stop()
	unseen := slices.Clone(t.f.names)
	for {
		if len(lines) == 0 { // the recording may still be written
			if err := t.app.Flush(); err != nil {
				return err
			}
		}
		line, ok := lineinput.Next(ctx, lines)
		if !ok {
			break
		}
		e, guard, isEvent, err := client.Event{}, false, false, line.Err
		if err == nil {
			e, guard, isEvent, err = locklog.Read([]byte(line.Text))
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case line.Number == 0 && err != nil:
			return &fault.UsageError{Err: fmt.Errorf("--from: %w", err)}
		case errors.Is(err, locklog.ErrIncomplete) && isLast(ctx, lines):
			t.app.Warn(fmt.Sprintf("--from: %s ends in the middle of line %d, which is left out", name, line.Number))
			continue
		case err != nil:
			return errors.Join(t.app.Flush(), fault.Usagef("--from: %s:%d: %w", name, line.Number, err))
		case !isEvent:
			continue
		case e.Kind == locklog.End:
			t.ended = e.Time
			continue
		}
		if guard {
			t.history.Guard(e.Key)
		}
		if len(t.f.names) > 0 && !guard && !slices.Contains(t.f.names, e.Key) && !slices.Contains(t.f.guards, e.Key) {
			continue
		}
		unseen = slices.DeleteFunc(unseen, func(name string) bool { return name == e.Key })
		t.ended = e.Time
		if err := t.handle(e); err != nil {
			return err
		}
	}
	switch {
	case !t.began && len(unseen) > 0:
		return fault.Usagef("--from: %s has no event of lock %s", name, format.Brief(unseen[0]))
	case !t.began:
		return fault.Usagef("--from: %s has no event of a lock", name)
	}
	for _, lock := range unseen {
		t.app.Inform(fmt.Sprintf("%s has no event of lock %s", name, format.Brief(lock)))
	}
	return nil
}

func isLast(ctx context.Context, lines <-chan lineinput.Line) bool {
	_, more := lineinput.Next(ctx, lines)
	return !more
}

func (t *tracer) handle(e client.Event) error {
	statement, ok := t.history.See(e)
	if !ok {
		return nil
	}
	t.began = true
	if t.chart != nil {
		t.chart.Add(statement)
	}
	if err := t.print(statement); err != nil {
		return err
	}
	switch e.Kind {
	case client.EventSet, client.EventDelete, client.EventOther:
		t.changes++
		if t.changes == t.f.count {
			return errCountReached
		}
	}
	return nil
}

// print prints a statement. In the human form it holds back renewals, because the statement about the
// end of a hold shows their number. Before a statement that does not show their number, it prints the
// lock's last renewal.
func (t *tracer) print(e format.LockEvent) error {
	if !t.merge {
		return t.app.Queue(e)
	}
	if last := t.holdBack(e); last != nil {
		t.clearLine()
		if err := t.app.Queue(*last); err != nil {
			return err
		}
	}
	if e.What == locklog.Renewed {
		return nil
	}
	t.clearLine()
	return t.app.Queue(e)
}

// holdBack keeps e, if e is a renewal, in place of the renewal that is held back for the same lock. If e
// is any other statement about a lock, holdBack drops the held-back renewal, or returns it if it must be
// printed before e. A statement about a guarded key has no effect.
func (t *tracer) holdBack(e format.LockEvent) (last *format.LockEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.renewals, func(r format.LockEvent) bool { return r.Name == e.Name })
	switch {
	case e.Guard:
	case e.What == locklog.Renewed && i < 0:
		t.renewals = append(t.renewals, e)
	case e.What == locklog.Renewed:
		t.renewals[i] = e
	case i >= 0:
		renewal := t.renewals[i]
		t.renewals = slices.Delete(t.renewals, i, i+1)
		if e.Renewals == 0 {
			return &renewal
		}
	}
	return nil
}

func (t *tracer) clearLine() {
	if t.endLine != nil {
		t.endLine()
		t.endLine = nil
	}
}

// line returns the text of the live line, which shows the renewals that are held back.
func (t *tracer) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, e := range t.renewals {
		parts = append(parts, e.Renewing(time.Since(e.Time)))
	}
	return strings.Join(parts, "  ")
}

// finish prints the renewals that are held back, the reason for the end, and the chart.
func (t *tracer) finish(err error) error {
	for _, e := range t.renewals {
		if queued := t.app.Queue(e); queued != nil {
			return queued
		}
	}
	reason := "error"
	switch {
	case err == nil:
		reason = "recording"
	case errors.Is(err, errTimeOver):
		reason, err = "for", nil
	case errors.Is(err, errCountReached):
		reason, err = "count", nil
	case fault.IsA[*signals.Interrupted](err):
		reason = "interrupted"
	case errors.Is(err, terminal.ErrClosed):
		return cmp.Or(t.draw(nil), fault.Output(err))
	case fault.IsA[*fault.OutputError](err):
		return err
	}
	if err == nil {
		err = t.refused
	}
	ended := t.ended
	if ended.IsZero() {
		ended = time.Now()
	}
	if t.chart != nil {
		t.chart.Until(ended)
	}
	if printed := t.app.Emit(format.End{Reason: reason, Events: t.changes, Time: ended}); printed != nil {
		return printed
	}
	if t.f.timeline {
		if printed := t.app.Emit(t.chart.Timeline()); printed != nil {
			return printed
		}
	}
	return t.draw(err)
}

// draw writes the picture of --svg. If the picture cannot be written, draw returns the reason;
// otherwise it returns err.
func (t *tracer) draw(err error) error {
	if t.f.svg == "" {
		return err
	}
	if written := files.Write(string(t.f.svg), t.chart.Timeline().SVG(), 0o666); written != nil {
		return &fault.OutputError{Err: written, File: true}
	}
	return err
}
