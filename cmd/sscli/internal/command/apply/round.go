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
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
	"github.com/sscli/sscli/cmd/sscli/internal/command/diff"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
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

	pipe    *client.Pipeline
	write   client.WriteOptions
	stale   []string // the keys to prune
	pending []*item  // keys without a printed result, in the order of the sources
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
	action  string           // one of the constants above; empty for a key not read or already gone
	command client.Command   // the write; not used for an unchanged key

	f *client.InFlight // nil if nothing was sent
	verb.Answer
}

// run carries out the round and prints a summary, unless the round is timed and did nothing.
func (r *round) run(ctx context.Context) (err error) {
	options, err := r.flags.set.Options()
	if err != nil {
		return err
	}
	r.write = options.WriteOptions
	r.pipe = r.session.Pipeline(bulkread.Window)
	store := bulkread.NewStore(r.app, r.session, r.timeout)
	if r.flags.prune != "" {
		if err := r.findStale(ctx, store); err != nil {
			return err
		}
	}
	end := r.app.Progress(r.timed, func() string { return fmt.Sprintf("%d of %d keys", r.read.Load(), r.set.Len()) })
	err = r.each(ctx, store, diff.Keys(r.set), r.compare)
	if err == nil && len(r.stale) > 0 {
		err = r.each(ctx, store, r.staleKeys, r.remove)
	}
	end()
	r.sum.Elapsed = time.Since(r.began)
	if s := r.sum; !r.timed || s.Created+s.Changed+s.Deleted+s.Conflicts+s.Refused+s.Unknown > 0 {
		r.app.Summarize(s)
	}
	return cmp.Or(err, r.refused, fault.NoIf(r.sum.Conflicts > 0))
}

func (r *round) findStale(ctx context.Context, store *bulkread.Store) error {
	seen := make(map[string]bool)
	err := bulkread.Scan(string(r.flags.prune))(ctx, store, func(e bulkread.Entry) error {
		if !r.set.Has(e.Key) && !seen[e.Key] {
			seen[e.Key] = true
			r.stale = append(r.stale, e.Key)
		}
		return nil
	})
	if err != nil || len(r.stale) == 0 || r.flags.dryRun {
		return err
	}
	return r.app.ConfirmAlways(ctx, fmt.Sprintf("prune %s that the sources do not have: %s", format.Count(len(r.stale), "key"), brief(r.stale)))
}

// brief returns the first few keys as text.
func brief(keys []string) string {
	const maxShown = 5
	var words []string
	for _, key := range keys[:min(maxShown, len(keys))] {
		words = append(words, format.BriefWord(key))
	}
	if len(keys) > maxShown {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

// staleKeys is a [bulkread.Keys] of the keys to prune.
func (r *round) staleKeys(_ context.Context, _ *bulkread.Store, add func(bulkread.Entry) error) error {
	for _, key := range r.stale {
		if err := add(bulkread.Entry{Key: key}); err != nil {
			return err
		}
	}
	return nil
}

// each reads keys, calls do with the Entry of each key that it could read, and carries out the items
// that do returns. A nil item means that there is nothing to do.
func (r *round) each(ctx context.Context, store *bulkread.Store, keys bulkread.Keys, do func(bulkread.Entry) *item) error {
	flush := func() error {
		r.pipe.Flush()
		return r.app.Flush()
	}
	err := store.Each(ctx, keys, flush, func(now bulkread.Entry) error {
		r.read.Add(1)
		if now.Err != nil {
			return r.add(ctx, &item{key: now.Key, Answer: verb.Answer{Err: now.Err}})
		}
		if it := do(now); it != nil {
			return r.add(ctx, it)
		}
		return nil
	})
	for len(r.pending) > 0 { // after an error, still report every write that was sent
		err = cmp.Or(err, r.finishFirst(ctx))
	}
	return cmp.Or(err, r.app.Flush())
}

// compare returns the item for a key of the sources. It returns nil if the source has no value, because
// the key was missing when it was exported.
func (r *round) compare(now bulkread.Entry) *item {
	it := &item{key: now.Key, was: now.GetResult, want: now.Old.GetResult, action: changed}
	o := r.set.Options(now.Key)
	o.WriteOptions = r.write
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

// remove returns the item that deletes a key to prune, or nil if the key is already gone.
func (r *round) remove(now bulkread.Entry) *item {
	if !now.Found {
		return nil
	}
	return &item{key: now.Key, was: now.GetResult, action: deleted, command: client.VDel(now.Key, now.Value, r.write)}
}

// add queues the write of an item. Then it finishes pending items, in order, as long as the first of
// them has its result or too many are pending.
func (r *round) add(ctx context.Context, it *item) error {
	if it.Err == nil && it.action != unchanged {
		it.Err = fence.Check(it.command)
	}
	if it.Err == nil && it.action != unchanged && !r.flags.dryRun {
		it.f, it.Err = r.pipe.Queue(ctx, it.command)
		switch {
		case ctx.Err() != nil && it.f == nil:
			return context.Cause(ctx)
		case it.Err != nil && !bulkread.IsAboutKey(it.Err):
			return fault.Describe(it.command, it.Err)
		case it.Err != nil:
			it.Err = fault.Describe(it.command, it.Err)
		}
	}
	r.pending = append(r.pending, it)
	for len(r.pending) > 0 && (r.pending[0].f == nil || r.pending[0].f.Over() || len(r.pending) > bulkread.Window) {
		if err := r.finishFirst(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finishFirst waits for the first pending item and prints its result. If finishFirst returns an error,
// the round ends.
func (r *round) finishFirst(ctx context.Context) error {
	it := r.pending[0]
	if it.f != nil && it.Reply == nil && it.Err == nil {
		if it.Reply, it.Err = it.f.Wait(); it.Lost() != nil {
			r.recoverLost(ctx)
		}
	}
	r.pending[0] = nil
	r.pending = r.pending[1:]
	if it.f != nil && it.Err != nil {
		it.Err = fault.Describe(it.command, it.Err)
	}
	return r.finish(ctx, it)
}

// recoverLost waits for all pending writes, and finds out whether those without a reply were applied.
// If one reply is lost, others usually are too, and reading back all keys together is faster.
func (r *round) recoverLost(ctx context.Context) {
	var answers []*verb.Answer
	for _, it := range r.pending {
		if it.f != nil && it.Reply == nil {
			it.Reply, it.Err = it.f.Wait()
			answers = append(answers, &it.Answer)
		}
	}
	verb.Recover(ctx, answers, r.timeout, r.session.ReadBack)
}

func (r *round) finish(ctx context.Context, it *item) error {
	if it.Warning != "" {
		if err := r.app.Flush(); err != nil { // print earlier results before the warning
			return err
		}
		r.app.Warn(it.Warning, "")
	}
	version, done := it.was.Version, true
	switch reply := it.Reply.(type) {
	case client.SetResult:
		r.app.WarnOf(reply.Info())
		version, done = reply.Version, reply.Applied
	case client.VDelResult:
		r.app.WarnOf(reply.Info())
		version, done = client.Version{}, reply.Deleted
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
	if r.timed && it.action == unchanged {
		return nil
	}
	result := format.Apply{Key: it.key, Action: it.action, Version: app.Version(version)}
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
	now, err = verb.ReadKey(ctx, r.session, it.key, r.timeout)
	switch {
	case err != nil:
		return now, err
	case now.Found == it.want.Found && bytes.Equal(now.Value, it.want.Value):
		if it.action = unchanged; !now.Found {
			it.action = ""
		}
	default:
		it.action = conflict
		holds := "it is missing now"
		if now.Found {
			holds = "it holds " + format.Brief(string(now.Value))
		}
		r.app.Warn(fmt.Sprintf("%s was left alone, because another client changed it after it was read: %s", format.BriefWord(it.key), holds), "")
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
		hint := "the same sscli apply once more, which writes only what differs"
		if r.timed {
			hint = "" // the next round does that
		}
		it.Err = &fault.NextError{Err: it.Err, Hint: hint}
	} else {
		r.sum.Refused++
	}
	r.app.Refuse(&r.refused, it.Err)
	return nil
}
