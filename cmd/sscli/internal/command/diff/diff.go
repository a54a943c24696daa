// Package diff is the command `sscli diff`, which compares keys with files or another store.
package diff

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/cmd/sscli/internal/sources"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
)

// New returns the command `sscli diff`.
func New(a *app.App) *cobra.Command {
	var to, prefix config.Text
	var follow bool
	cmd := &cobra.Command{
		Use:     "diff {SOURCE|--to CONTEXT} [PATTERN]",
		Short:   "Compare keys with files or another store",
		GroupID: app.GroupFiles,
		Long: `Print the keys whose values differ between the store (old) and a file that sscli export
wrote (new), or the store of another context (--to, new). Like kubectl diff, it points from
what is to what sscli apply would make. The exit code is 1 if any key differs, and 0 if
none does.

SOURCE is a file, or any other source that sscli apply takes: a directory with a file for
each key, a data set, a manifest, or - for standard input.

A key is added (+), removed (-) or changed (~). If both values are JSON objects or arrays,
diff prints the fields that differ: .config.mode, .list[2]. Numbers are compared as they
are written. The raw form is added, removed or changed, KEY, the old and the new version,
and the old and the new value, separated by tabs.

PATTERN is a pattern as in sscli scan; the default is *. With --to, diff compares only the
keys that match PATTERN. With SOURCE, it compares every key of the source, and other keys
of the store count as removed if they match PATTERN. So does a key whose line in SOURCE says
that it was missing (found is false), although sscli apply leaves such a key alone. The
store may not list keys that are not UTF-8 text: of these, diff compares only the keys of
SOURCE.

The stores have no snapshots: at the end, stderr shows which keys were written (by the
store's clock, compared with the local clock) or deleted while they were read. Memory
holds the names of all keys, but only the values that are being compared.`,
		Example: "  sscli diff backup.jsonl\n  sscli diff thermostat.jsonl 'thermostat/*'\n  sscli diff settings/ --prefix config/ 'config/*'\n  sscli diff -c site-a --to site-b 'config/*'",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 && to == "" {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			source := ""
			if to == "" {
				if len(args) == 0 {
					return fault.Usagef("nothing to compare with: expected SOURCE, or --to CONTEXT")
				}
				source, args = args[0], args[1:]
			}
			pattern := "*"
			if len(args) > 0 {
				pattern, args = args[0], args[1:]
			}
			if len(args) > 0 {
				return fault.Usagef("%.64q after PATTERN: expected one pattern, in quotes so that the shell does not expand it to file names", args[0])
			}
			if err := client.Scan(pattern, nil).Check(); err != nil {
				return &fault.UsageError{Err: err}
			}
			defer app.CollectMore()()
			d := &differ{app: a, pattern: pattern, set: new(sources.Set), seen: make(exchange.Seen)}
			if source != "" {
				return d.withSource(cmd.Context(), source, sources.Options{Prefix: string(prefix), Follow: follow, AllowEmpty: true})
			}
			other, err := a.InContext(cmd.Context(), cmd.Flags(), string(to), "--to")
			if err != nil {
				return err
			}
			return d.withStore(cmd.Context(), other, string(to))
		},
	}
	cmd.Flags().Var(&to, "to", "compare with the store of `CONTEXT`, or of a URL")
	cmd.Flags().Var(&prefix, "prefix", "put `PREFIX` before keys that are named after files")
	cmd.Flags().BoolVar(&follow, "follow", false, "follow links out of a directory, as sscli apply does")
	_ = cmd.RegisterFlagCompletionFunc("to", complete.ContextNames(a, 0)) // the flag exists
	return cmd
}

// A differ compares two sides: files with a store, or a store with another one. The entries of the second side
// refer to the first in Old, but a difference from files points from the store to them.
type differ struct {
	app     *app.App
	pattern string
	began   time.Time

	set       *sources.Set   // the first side, if it is files; otherwise empty
	fromStore bool           // the first side is files
	seen      exchange.Seen  // keys of the first store, and keys counted as added
	missing   exchange.Entry // the Old of the keys that only the second side has; does not change

	compared atomic.Int64 // number of keys; the progress goroutine reads it too
	sum      format.DiffSummary
	refused  error // the error of the first key that could not be read
}

func (d *differ) withSource(ctx context.Context, name string, o sources.Options) (err error) {
	d.fromStore = true
	o.Stdin = d.app.ReadKeys
	d.set, err = sources.Open(ctx, []string{name}, o)
	if usage, ok := errors.AsType[*fault.UsageError](err); ok && errors.Is(err, fs.ErrNotExist) {
		if all, _, loadErr := config.Load(d.app.Flags, d.app.Env); loadErr == nil && slices.Contains(all.Names(), name) || strings.Contains(name, "://") {
			usage.Hint = suggest.Run("sscli", "diff", "--to", name)
		}
	}
	if err != nil {
		return err
	}
	return d.app.WithSession(ctx, func(s *client.Session, _ client.Options) error {
		return d.run(ctx, exchange.NewBulk(d.app, s), Keys(d.set))
	})
}

// Keys returns the keys of sources. The field Old of each entry holds the key's entry in the sources.
func Keys(set *sources.Set) exchange.Keys {
	return func(ctx context.Context, _ *exchange.Store, add func(exchange.Entry) error) error {
		for e, err := range set.Entries(ctx) {
			if err != nil {
				return err
			}
			old := exchange.Entry{GetResult: client.GetResult{Found: e.Found}, Load: e.Load}
			if err := add(exchange.Entry{Key: e.Key, Old: &old}); err != nil {
				return err
			}
		}
		return nil
	}
}

func (d *differ) withStore(ctx context.Context, other *app.App, name string) error {
	return d.app.WithSession(ctx, func(s *client.Session, _ client.Options) error {
		var inner error
		err := other.WithSession(ctx, func(otherSession *client.Session, _ client.Options) error {
			old := exchange.NewBulk(d.app, s)
			now := exchange.NewBulk(d.app, otherSession)
			now.Retry.For = cmp.Or(d.app.Settings.RetryFor, other.Timeout())
			now.Retry.Context = name
			inner = d.run(ctx, now, d.storeEntries(old))
			return nil
		})
		if err != nil && !fault.IsA[*config.Error](err) { // a config.Error already names the invalid setting
			err = fmt.Errorf("context %s: %w", name, err)
		}
		return errors.Join(inner, err)
	})
}

// storeEntries returns the keys of the old store, without repetitions. The field Old of each entry holds
// the key's entry in the old store. Unlike [Keys], storeEntries sets Old.Key.
func (d *differ) storeEntries(s *exchange.Store) exchange.Keys {
	return func(ctx context.Context, _ *exchange.Store, add func(exchange.Entry) error) error {
		noFlush := func() error { return nil }
		return s.Each(ctx, exchange.Scan(d.pattern), noFlush, func(old exchange.Entry) error {
			if !d.seen.Add(old.Key) {
				return nil
			}
			return add(exchange.Entry{Key: old.Key, Old: &old})
		})
	}
}

// run compares the entries of old with the new side. It prints the differences and a summary.
func (d *differ) run(ctx context.Context, now *exchange.Store, old exchange.Keys) error {
	d.began = time.Now()
	end := d.app.Progress(false, func() string { return fmt.Sprintf("%d keys compared", d.compared.Load()) })
	err := now.Each(ctx, old, d.app.Flush, d.compare)
	if err == nil {
		err = now.Each(ctx, d.addedKeys, d.app.Flush, d.compare)
	}
	end()
	d.sum.Elapsed = time.Since(d.began)
	d.app.Summarize(d.sum)
	return cmp.Or(err, d.refused, fault.NoIf(d.sum.Added+d.sum.Removed+d.sum.Changed > 0))
}

// addedKeys is a [exchange.Keys] of the keys that only the new side has.
func (d *differ) addedKeys(ctx context.Context, now *exchange.Store, add func(exchange.Entry) error) error {
	return exchange.Scan(d.pattern)(ctx, now, func(key exchange.Entry) error {
		if d.set.Has(key.Key) || !d.seen.Add(key.Key) {
			return nil
		}
		key.Old = &d.missing
		return add(key)
	})
}

// compare counts a key and prints the difference between now and now.Old, if there is one.
func (d *differ) compare(now exchange.Entry) error {
	d.compared.Add(1)
	old := now.Old
	if err := cmp.Or(old.Err, now.Err); err != nil {
		d.sum.Refused++
		d.app.Refuse(&d.refused, err)
		return nil
	}
	switch {
	case old.Key != "" && !old.Found, old == &d.missing && !now.Found: // deleted between SCAN and GET
		d.sum.Record(now.Key, true)
	case old.WrittenSince(d.began), now.WrittenSince(d.began):
		d.sum.Record(now.Key, false)
	}
	from, to := old.GetResult, now.GetResult
	if d.fromStore {
		from, to = to, from
	}
	found := Difference(now.Key, from, to)
	switch found.Change {
	case added:
		d.sum.Added++
	case removed:
		d.sum.Removed++
	case changed:
		d.sum.Changed++
	default:
		if old.Found {
			d.sum.Equal++
		}
		return nil
	}
	return d.app.Queue(found)
}

// The values of Change in a [format.Difference].
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// Difference returns how two states of a key differ. The Change of the result is empty if the values
// are equal.
func Difference(key string, old, now client.GetResult) format.Difference {
	d := format.Difference{Key: key, OldVersion: old.Version, NewVersion: now.Version}
	if old.Found == now.Found && bytes.Equal(old.Value, now.Value) {
		return d
	}
	if old.Found {
		d.Old = append([]byte{}, old.Value...) // nil would mean a missing key
	}
	if now.Found {
		d.New = append([]byte{}, now.Value...)
	}
	switch {
	case !old.Found:
		d.Change = added
	case !now.Found:
		d.Change = removed
	default:
		d.Change = changed
		d.Fields = jsonfield.Changes(d.Old, d.New)
	}
	return d
}
