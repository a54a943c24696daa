package apply

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/command/diff"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// A round reads the keys of the sources, and writes each key whose value differs. It prints the
// results in the order of the sources. With --prune, it then deletes keys that the sources lack.
type round struct {
	*plan
	timed bool // print the time with each result, and no result for unchanged keys
	began time.Time
	// onState, if not nil, is called when the round is done with a key. now is the key's last known
	// state.
	onState func(key string, now client.GetResult)

	writes  *exchange.Window[*item]
	options client.WriteOptions
	stale   *verb.Seen // the keys to prune; nil = none
	sum     format.ApplySummary
	read    atomic.Int64 // number of keys read; the progress goroutine reads it too
	refused error        // the first error about a single key
}

// The actions of an item.
const (
	created   = "created"
	changed   = "changed"
	deleted   = "deleted"
	unchanged = "unchanged"
	conflict  = "conflict"
)

// An item is one key of a round, and what the round does with it.
type item struct {
	key     string
	was     client.GetResult // what the key held when it was read
	want    client.GetResult // what the key should hold; if not Found, the round deletes the key
	action  string           // one of the constants above; empty = not read, or already gone
	command client.Command   // the write; not used for an unchanged key or a conflict

	exchange.Outcome
}

// run carries out the round and prints a summary, unless the round is timed and did nothing.
func (r *round) run(ctx context.Context) (err error) {
	settle := r.app.HoldMistakes()
	defer func() { err = settle(err) }()
	options, err := r.flags.set.Options(r.app.Env)
	if err != nil {
		return err
	}
	r.options = options.WriteOptions
	store := exchange.NewBulk(r.app, r.session)
	r.writes = exchange.NewWindow(store, exchange.Options{Limit: exchange.MaxInFlight, Ends: true}, func(it *item, o exchange.Outcome) error {
		it.Outcome = o
		return r.finish(ctx, it)
	})
	if r.flags.prune != "" {
		if err := r.findStale(ctx, store); err != nil {
			return err
		}
	}
	end := r.app.Progress(r.timed, func() string { return fmt.Sprintf("%d of %d keys", r.read.Load(), r.set.Len()) })
	err = r.finishAll(ctx, store.Each(ctx, diff.Keys(r.set), r.flush, func(now exchange.Entry) error {
		return r.add(ctx, now, r.compare(now))
	}))
	if err == nil && r.stale != nil {
		err = r.finishAll(ctx, r.stale.Again(ctx, store, r.flush, func(now exchange.Entry, same bool) error {
			return r.add(ctx, now, r.remove(now, same))
		}))
	}
	end()
	r.sum.Elapsed = time.Since(r.began)
	if s := r.sum; !r.timed || s.Created+s.Changed+s.Deleted+s.Conflicts+s.Refused+s.Unknown > 0 {
		r.app.Summarize(s)
	}
	if s := r.sum; !s.DryRun && s.Created+s.Changed+s.Deleted+s.Unknown > 0 {
		if fault.IsA[*fault.UsageError](err) { // a source changed after it was checked
			r.app.Refuse(&r.refused, err)
			err = nil
		}
	}
	return cmp.Or(err, r.refused, fault.NoIf(r.sum.Conflicts > 0))
}

// findStale reads the keys to prune, and asks the user about them. They are deleted later, as they are
// now.
func (r *round) findStale(ctx context.Context, store *exchange.Store) (err error) {
	kept := make(exchange.Seen)
	keep := func(key string) bool {
		has := r.set.Has(key)
		if has {
			kept.Add(key)
		}
		return has
	}
	r.stale, err = verb.Look(ctx, store, string(r.flags.prune), keep, func(err error) {
		r.sum.Refused++
		r.app.Refuse(&r.refused, err)
	})
	if err != nil || r.stale.Len() == 0 {
		return err
	}
	n := r.stale.Len()
	what := format.Count(n, "key")
	if n > len(kept) {
		pattern := format.BriefWord(string(r.flags.prune))
		switch {
		case len(kept) > 0:
			what = fmt.Sprintf("%d of the %d keys that match %s", n, n+len(kept), pattern)
		case n == 1:
			what = "the only key that matches " + pattern
		default:
			what = fmt.Sprintf("all %d keys that match %s", n, pattern)
		}
		if r.app.Settings.Yes || r.flags.dryRun {
			r.app.Warn("--prune deletes " + what)
		}
	}
	if r.flags.dryRun {
		return nil
	}
	return r.app.ConfirmAlways(ctx, fmt.Sprintf("prune %s, not in the sources: %s", what, brief(r.stale)))
}

// brief returns the names of the first few keys as text.
func brief(keys *verb.Seen) string {
	const maxShown = 5
	var words []string
	for name := range keys.Names() {
		if len(words) == maxShown {
			words = append(words, "…")
			break
		}
		words = append(words, format.BriefWord(name))
	}
	return strings.Join(words, ", ")
}

// flush sends the queued writes and prints the queued results.
func (r *round) flush() error {
	r.writes.Flush()
	return r.app.Flush()
}

// finishAll waits for all writes and prints their results, even after an error.
func (r *round) finishAll(ctx context.Context, err error) error {
	return cmp.Or(r.writes.Finish(ctx, err), r.app.Flush())
}

// compare returns the item for a key of the sources. It returns nil if the source has no value, because
// the key was missing when it was exported.
func (r *round) compare(now exchange.Entry) *item {
	it := &item{key: now.Key, was: now.GetResult, want: now.Old.GetResult, action: changed}
	o := r.set.Options(now.Key)
	o.WriteOptions = r.options
	switch {
	case !it.want.Found:
		return nil
	case !it.was.Found:
		it.action = created
		o.Condition = client.NX // do not overwrite a key that another client creates meanwhile
	case bytes.Equal(it.was.Value, it.want.Value):
		it.action = unchanged
		return it
	}
	it.command = client.Set(now.Key, it.want.Value, o)
	return it
}

// remove returns the item that deletes a key to prune, or nil if the key is already gone. same reports
// whether the key is as it was when the user was asked.
func (r *round) remove(now exchange.Entry, same bool) *item {
	switch {
	case !now.Found:
		return nil
	case !same && !r.flags.dryRun:
		r.app.Warn(verb.LeftAlone(now.Key, now.GetResult))
		return &item{key: now.Key, was: now.GetResult, want: now.GetResult, action: conflict}
	}
	return &item{key: now.Key, was: now.GetResult, action: deleted, command: client.VDel(now.Key, now.Value, r.options)}
}

// add reports a key that could not be read, or queues the write of its item. A nil item means that there
// is nothing to do.
func (r *round) add(ctx context.Context, now exchange.Entry, it *item) error {
	r.read.Add(1)
	switch {
	case now.Err != nil:
		it = &item{key: now.Key}
	case it == nil:
		return nil
	}
	if r.flags.dryRun && now.Err == nil && (it.action == created || it.action == changed) {
		now.Err = verb.CheckSize(r.session, it.command)
	}
	writes := now.Err == nil && it.action != unchanged && it.action != conflict && !r.flags.dryRun
	if writes {
		now.Err = verb.CheckFence(r.app.Env, it.command)
	}
	if now.Err != nil || !writes {
		return r.writes.Place(ctx, it, exchange.Outcome{Err: now.Err})
	}
	return r.writes.Add(ctx, it, &it.command)
}

func (r *round) finish(ctx context.Context, it *item) error {
	if err := it.Warn(r.app); err != nil {
		return err
	}
	version, done := it.was.Version, true
	switch result := it.Result.(type) {
	case client.SetResult:
		version, done = result.Version, result.Applied
	case client.VDelResult:
		version, done = client.Version{}, result.Deleted
	}
	now := it.want
	if it.Err == nil && !done {
		if now, it.Err = r.lookAgain(ctx, it); it.action == "" {
			return nil
		}
		version = now.Version
	}
	if it.Err != nil {
		return r.refuse(it)
	}
	if r.onState != nil {
		r.onState(it.key, now)
	}
	if r.flags.diff && it.action != unchanged && it.action != conflict {
		if err := r.app.Queue(diff.Difference(it.key, it.was, it.want)); err != nil {
			return err
		}
	}
	r.count(it.action)
	if it.action != unchanged && it.action != conflict && !r.flags.dryRun {
		r.app.Wrote()
	}
	if r.timed && it.action == unchanged {
		return nil
	}
	result := format.Apply{Key: it.key, Action: it.action, Version: version}
	if r.flags.dryRun {
		result.Action = map[string]string{created: "create", changed: "change", deleted: "delete", unchanged: unchanged}[it.action]
	}
	if r.timed {
		result.Time = time.Now()
	}
	return r.app.Queue(result)
}

func (r *round) count(action string) {
	switch action {
	case created:
		r.sum.Created++
	case changed:
		r.sum.Changed++
	case unchanged:
		r.sum.Unchanged++
	case deleted:
		r.sum.Deleted++
	case conflict:
		r.sum.Conflicts++
	}
}

// lookAgain reads a key again when our write was not applied because another client had changed the
// key. It sets the action to unchanged if the key holds the wanted value, to "" if a key to prune is
// already gone, and otherwise to conflict.
func (r *round) lookAgain(ctx context.Context, it *item) (now client.GetResult, err error) {
	if err := r.app.Flush(); err != nil {
		return now, err
	}
	now, err = verb.ReadKey(ctx, r.app, r.session, it.key)
	switch {
	case err != nil:
		return now, err
	case now.Found == it.want.Found && bytes.Equal(now.Value, it.want.Value):
		if it.action = unchanged; !now.Found {
			it.action = ""
		}
	default:
		it.action = conflict
		r.app.Warn(verb.LeftAlone(it.key, now))
	}
	return now, nil
}

// refuse prints and counts the error of an item: the key could not be read, or the write was refused or
// has an unknown outcome.
func (r *round) refuse(it *item) error {
	if err := r.app.Flush(); err != nil {
		return err
	}
	if r.onState != nil {
		r.onState(it.key, it.was)
	}
	if fault.IsA[*fault.UnknownError](it.Err) {
		r.sum.Unknown++
		r.app.Wrote()
		hint := suggest.Say("the same sscli apply once more, which writes only what differs")
		if r.timed {
			hint = nil // the next round does that
		}
		it.Err = &fault.NextError{Err: it.Err, Hint: hint}
	} else {
		r.sum.Refused++
	}
	r.app.Refuse(&r.refused, it.Err)
	return nil
}
