package basics

import (
	"cmp"
	"context"
	"fmt"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// A matcher deletes the keys that match a pattern, as they were when it read them.
type matcher struct {
	pattern string
	dryRun  bool
	options client.WriteOptions

	app     *app.App
	changed bool  // another client wrote one of the keys after it was read
	refused error // the first error about a single key
}

// A match is one key that matches.
type match struct {
	key     string
	changed bool // another client wrote the key after it was read
}

// run finds the matching keys. With m.dryRun it prints them; otherwise it asks the user, and deletes
// them.
func (m *matcher) run(ctx context.Context, a *app.App, s *client.Session) (err error) {
	m.app = a
	settle := a.HoldMistakes()
	defer func() { err = settle(err) }()
	defer app.CollectMore()()
	store := exchange.NewBulk(a, s)
	keys, err := verb.Look(ctx, store, m.pattern, nil, func(err error) { a.Refuse(&m.refused, err) })
	first, last := keys.Range()
	switch n := keys.Len(); {
	case err != nil:
		return err
	case n == 0 && m.refused == nil:
		a.Inform("no key matches " + format.Brief(m.pattern))
		return nil
	case n == 0:
		return m.refused
	case m.dryRun:
		for name := range keys.Names() {
			if err := a.Queue(format.Key{Key: name}); err != nil {
				return err
			}
		}
		return cmp.Or(a.Flush(), m.refused)
	case n == 1:
		err = a.ConfirmAlways(ctx, fmt.Sprintf("del %s, the only match of %s", format.Brief(first), format.Brief(m.pattern)))
	default:
		err = a.ConfirmAlways(ctx, fmt.Sprintf("del %d keys that match %s, %s to %s", n, format.Brief(m.pattern), format.Brief(first), format.Brief(last)))
	}
	if err != nil {
		return err
	}
	a.Signals.Arm()
	writes := exchange.NewWindow(store, exchange.Options{Limit: exchange.MaxInFlight, Ends: true}, m.finish)
	flush := func() error {
		writes.Flush()
		return a.Flush()
	}
	err = writes.Finish(ctx, keys.Again(ctx, store, flush, func(now exchange.Entry, same bool) error {
		vdel := client.VDel(now.Key, now.Value, m.options)
		deletes := now.Err == nil && now.Found && same
		if deletes {
			now.Err = verb.CheckFence(a.Env, vdel)
		}
		it := match{key: now.Key, changed: now.Found && !deletes}
		if now.Err != nil || !deletes {
			return writes.Place(ctx, it, exchange.Outcome{Err: now.Err})
		}
		return writes.Add(ctx, it, &vdel)
	}))
	return cmp.Or(err, a.Flush(), m.refused, fault.NoIf(m.changed))
}

// finish prints the result for a key. A key that another client deleted first counts as deleted: the exit
// code is 0.
func (m *matcher) finish(it match, o exchange.Outcome) error {
	result := format.Del{Op: "del", Key: it.key, Many: true, Changed: it.changed}
	if o.Err != nil {
		if err := m.app.Flush(); err != nil { // print earlier results before the error
			return err
		}
		if fault.IsA[*fault.UnknownError](o.Err) {
			m.app.Wrote()
		}
		m.app.Refuse(&m.refused, o.Err)
		return nil
	}
	if r, ok := o.Result.(client.VDelResult); ok {
		result.Deleted, result.Changed = r.Deleted, r.Found && !r.Deleted
		if r.Deleted {
			m.app.Wrote()
		}
		result.Version, result.RTT = r.Version, r.RTT
	}
	if err := o.Warn(m.app); err != nil {
		return err
	}
	if result.Changed {
		m.changed = true
		if err := m.app.Flush(); err != nil {
			return err
		}
		m.app.Warn(format.BriefWord(it.key) + " was left alone, because another client changed it after it was read")
	}
	return m.app.Queue(result)
}
