package lock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/lock/locklog"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

func newStatus(a *app.App) *cobra.Command {
	var observe usage.Duration
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show who holds a lock",
		Long: `Print who holds the lock NAME, its newest fencing token, and the token's age: the time
since the acquisition or the last renewal. The exit code is 0 if the lock is held, and 1
if it is free.

The time in the token is from the store's clock, and the age is computed with the local
clock, so the age is wrong by the difference between the two clocks. With --observe, the
age counts from a renewal that was seen, and is exact.

The store does not say when the lock expires. A holder should renew it three times in a
lease, as sscli does. So if no renewal was seen in 30s, the holder may be gone, or its
lease may be longer than 90s.`,
		Example: "  sscli lock status build --observe 10s    # is it being renewed?",
		Args:    usage.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return a.WithSession(cmd.Context(), func(s *client.Session, _ client.Options) error {
				readings, err := readAndObserve(cmd.Context(), a, s, []string{name}, observe.Duration)
				if err == nil {
					err = readings[0].err
				}
				if err != nil {
					return statusError(name, err)
				}
				result := readings[0].status
				if err := a.Emit(result); err != nil {
					return err
				}
				if result.Held && result.Renewals.Observed > 0 && result.Renewals.Seen == 0 {
					a.Notify(format.Note{Level: format.Notice, Message: "the holder was not seen to renew the lock; if it is gone, the lock can be taken from it",
						Hint: a.Hint(suggest.Try("`sscli lock break NAME`").Fill(suggest.Name, name))})
				}
				if !result.Held {
					a.NotePattern(name, suggest.Try("`lock list PATTERN`"))
				}
				return fault.NoIf(!result.Held)
			})
		},
	}
	cmd.Flags().Var(observe.Least(usage.Positive), "observe", "watch the lock for `DURATION` and count its renewals")
	return cmd
}

func newList(a *app.App) *cobra.Command {
	var observe usage.Duration
	cmd := &cobra.Command{
		Use:   "list [PATTERN | NAME...]",
		Short: "Show who holds several locks",
		Long: `Print a line for each lock: whether it is held, its value (the holder), the token's age
(the time since the acquisition or the last renewal), and the token. With --observe, the
line also shows how often the holder renews the lock, or that no renewal was seen.

An operand with *, ? or [ is a PATTERN, as in sscli scan. A PATTERN needs a broker that has
SCAN, and may leave out names that are not UTF-8 text; a NAME does not. Without operands,
list shows the keys of the store that look held: --observe saw a renewal, the value is a
holder as sscli or its Go library generates it, or it is text that was written in the
last two minutes. It counts the other keys.

The store does not say which keys are locks. A key is listed as "held" if it is a NAME, or
if --observe saw that it was renewed: written again with the same value. Other keys that
match a PATTERN are listed as "maybe", and their values may not be holders.

The exit code is 1 if a NAME is free. The store does not say when a lock expires, and the
age is wrong by the difference between the local clock and the store's clock.`,
		Example: `  sscli lock list 'locks/*'
  sscli lock list build deploy --observe 30s    # are they being renewed?`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return fault.Usagef("the name of a lock is empty")
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, _ client.Options) error {
				return list(cmd.Context(), a, s, args, observe.Duration)
			})
		},
	}
	cmd.Flags().Var(observe.Least(usage.Positive), "observe", "watch the locks for `DURATION` and count their renewals")
	return cmd
}

// list prints the locks that the operands name or match. Without operands, it prints all keys that the
// store lists. Without --observe, it prints while it reads.
func list(ctx context.Context, a *app.App, s *client.Session, operands []string, observe time.Duration) error {
	l := lister{app: a, table: a.NewTable(1000), all: len(operands) == 0, named: make(map[string]bool), operands: operands}
	if l.all {
		l.operands = []string{"*"}
	}
	for _, operand := range l.operands {
		if !isPattern(operand) {
			l.named[operand] = true
		}
	}
	store := exchange.NewBulk(a, s)
	var err error
	if observe == 0 {
		err = store.Each(ctx, l.names, a.Flush, l.read)
	} else {
		err = l.observe(ctx, s, store, observe)
	}
	switch none := !l.found && l.refused == nil && err == nil; {
	case l.others > 0:
		err = cmp.Or(err, l.table.Flush())
		a.Inform(fmt.Sprintf("%s not shown, without a sign of a held lock; a PATTERN such as 'locks/*' shows every key", format.Count(l.others, "key")))
	case none && l.all:
		a.Inform("the store lists no keys, so there is no lock")
	case none:
		a.Inform("no key matches " + format.Brief(strings.Join(operands, " ")))
	}
	return cmp.Or(err, l.table.Flush(), l.refused, fault.NoIf(l.free))
}

// looksHeld reports whether a key that nobody named looks like a lock that is held: it was renewed, its value is a
// holder as sscli generates it, or could be one and is new.
func (l *lister) looksHeld(s format.LockStatus) bool {
	return s.Renewals.Seen > 0 || client.IsGeneratedHolder([]byte(s.Holder)) ||
		s.Age < longLease+wire.MaxDrift && notHolder([]byte(s.Holder)) == "" && !json.Valid([]byte(s.Holder))
}

func isPattern(operand string) bool { return strings.ContainsAny(operand, "*?[") }

// A lister is the state of a `lock list`.
type lister struct {
	app      *app.App
	table    *app.Table
	operands []string
	all      bool            // there were no operands
	named    map[string]bool // the operands that are names

	others  int  // without operands: keys that do not look held
	found   bool // there is a lock to print
	free    bool // a named lock is free
	refused error
}

// names is a [exchange.Keys] of the names that the operands name or match, each once.
func (l *lister) names(ctx context.Context, s *exchange.Store, add func(exchange.Entry) error) error {
	seen := make(exchange.Seen)
	once := func(e exchange.Entry) error {
		if !seen.Add(e.Key) {
			return nil
		}
		l.app.RememberKey(e.Key)
		return add(e)
	}
	for _, operand := range l.operands {
		var err error
		if isPattern(operand) {
			err = exchange.Scan(operand)(ctx, s, once)
		} else {
			err = once(exchange.Entry{Key: operand})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) read(e exchange.Entry) error {
	if e.Err != nil {
		l.app.Refuse(&l.refused, e.Err)
		return nil
	}
	var r reading
	r.set(e.Key, e.GetResult)
	return l.print(r)
}

func (l *lister) print(r reading) error {
	switch {
	case r.err != nil:
		l.app.Refuse(&l.refused, statusError(r.status.Name, r.err))
		return nil
	case !r.status.Held && !l.named[r.status.Name]:
		return nil // the key was deleted or expired after the scan
	case l.all && !l.looksHeld(r.status):
		l.others++
		return nil
	case !r.status.Held:
		l.free = true
		l.app.NotePattern(r.status.Name, suggest.Try("`lock list PATTERN`"))
	}
	l.found, r.status.List = true, true
	r.status.Maybe = r.status.Held && !l.named[r.status.Name] && r.status.Renewals.Seen == 0
	return l.table.Add(r.status)
}

// observe reads the locks, watches them for the time d, and prints them.
func (l *lister) observe(ctx context.Context, s *client.Session, store *exchange.Store, d time.Duration) error {
	var names []string
	err := l.names(ctx, store, func(e exchange.Entry) error {
		names = append(names, e.Key)
		return nil
	})
	if err != nil {
		return err
	}
	readings, err := readAndObserve(ctx, l.app, s, names, d)
	if err != nil {
		return err
	}
	for _, r := range readings {
		if r.err != nil && ctx.Err() != nil {
			return statusError(r.status.Name, r.err) // all later locks have this error too
		}
		if err := l.print(r); err != nil {
			return err
		}
	}
	return nil
}

// statusError adds the name of a lock to an error. After a signal, the error does not mention the
// interrupted request.
func statusError(name string, err error) error {
	if e, ok := errors.AsType[*signals.Interrupted](err); ok {
		err = e
	}
	return fault.AboutReading(name, fmt.Errorf("lock %s: %w", format.Brief(name), err))
}

// A reading is the state of a lock, or why the lock could not be read.
type reading struct {
	status format.LockStatus
	err    error
}

// set sets the status of a lock from the state of its key.
func (r *reading) set(name string, got client.GetResult) {
	r.status.Name, r.status.Held, r.status.Holder = name, got.Found, string(got.Value)
	r.status.Token, r.status.Age = got.Version, time.Since(got.Version.Time())
}

// readLocks reads the keys of locks. If there are several locks, readLocks repeats each read whose
// reply was lost.
func readLocks(ctx context.Context, a *app.App, s *client.Session, names []string) []reading {
	readings := make([]reading, len(names))
	store := exchange.NewBulk(a, s)
	if len(names) == 1 {
		store = exchange.NewStore(a, s)
	}
	w := exchange.NewWindow(store, exchange.Options{Limited: ctx}, func(i int, o exchange.Outcome) error {
		readings[i].status.Name = names[i]
		if readings[i].err = errors.Unwrap(o.Err); o.Err == nil { // the caller names the lock
			readings[i].set(names[i], o.Result.(client.GetResult))
		}
		return nil
	})
	for i, name := range names {
		_ = w.Add(ctx, i, new(client.Get(name))) // done returns no error
	}
	_ = w.Finish(ctx, nil)
	return readings
}

// readAndObserve reads locks. If d is not 0, it then watches the readable ones for the time d, and
// reads the locks again.
func readAndObserve(ctx context.Context, a *app.App, s *client.Session, names []string, d time.Duration) ([]reading, error) {
	readings := readLocks(ctx, a, s, names)
	if d == 0 {
		return readings, nil
	}
	var readable []string
	for _, r := range readings {
		if r.err == nil {
			readable = append(readable, r.status.Name)
		}
	}
	if len(readable) == 0 {
		return readings, nil
	}
	observers, err := observeLocks(ctx, a, s, readable, d)
	if err != nil {
		return nil, err
	}
	for i, now := range readLocks(ctx, a, s, names) {
		o := observers[names[i]]
		if o == nil {
			continue // the first read failed
		}
		if now.err == nil {
			now.err = o.Err()
		}
		if now.err == nil {
			o.AddTo(&now.status, d)
		}
		readings[i] = now
	}
	return readings, nil
}

// errObserved is the cause of a context that ends after the time of --observe.
var errObserved = errors.New("the time of --observe is over")

// observeLocks watches locks for the time d, and returns an observer for each. An error means that
// the watch did not start or ended early.
func observeLocks(ctx context.Context, a *app.App, s *client.Session, names []string, d time.Duration) (map[string]*locklog.Observer, error) {
	w, err := s.Watch(ctx, names)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	what := "lock " + format.Brief(names[0])
	if len(names) > 1 {
		what = format.Count(len(names), "lock")
	}
	a.Inform(fmt.Sprintf("observing %s for %v", what, d))
	observers := make(map[string]*locklog.Observer, len(names))
	for _, name := range names {
		observers[name] = locklog.NewObserver()
	}
	limited, cancel := context.WithTimeoutCause(ctx, d, errObserved) // each observation takes at least so long
	defer cancel()
	away := app.Outage{Notify: a.Notify}
	for {
		e, err := away.Next(limited, w, a.Flush)
		if errors.Is(err, errObserved) {
			return observers, nil
		}
		if err != nil {
			return nil, err
		}
		if o := observers[e.Key]; o != nil {
			o.See(e)
		}
	}
}
