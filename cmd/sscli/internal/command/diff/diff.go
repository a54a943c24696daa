// Package diff is the command `sscli diff`, which compares keys with a file or another store.
package diff

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/format"
)

// New returns the command `sscli diff`.
func New(a *app.App) *cobra.Command {
	var to config.Text
	cmd := &cobra.Command{
		Use:     "diff {FILE|--to CONTEXT} [PATTERN]",
		Short:   "Compare keys with a file or another store",
		GroupID: app.GroupStore,
		Long: `Print the keys whose values differ: between a file that sscli export wrote (old) and the
store (new), or between the store (old) and the store of another context (--to, new). The
exit code is 1 if there are any, and 0 if there are none.

A key is added (+), removed (-) or changed (~). Of JSON values, an object or an array on
both sides, the fields that differ are printed: .config.mode, .list[2]. Numbers are
compared as they are written. The raw form is added, removed or changed, KEY, the old
and the new version, and the old and the new value, separated by tabs.

PATTERN is that of sscli scan; the default is *. With --to, only keys that match it are
compared. With a file, each of its keys is compared, and PATTERN says which other keys
of the store count as added. The store may not list keys that are not UTF-8 text: of
those, only the keys of a file are compared.

The stores have no snapshots: at the end stderr says which keys were written (by the
store's clock, compared with this one's) or deleted while they were read. Memory holds
the names of the keys, and of their values only those that are being compared.`,
		Example: "  sscli diff backup.jsonl\n  sscli diff thermostat.jsonl 'thermostat/*'\n  sscli diff -c site-a --to site-b 'config/*'",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 && to == "" {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file := ""
			if to == "" {
				if len(args) == 0 {
					return fault.Usagef("nothing to compare with: want FILE, or --to CONTEXT")
				}
				file, args = args[0], args[1:]
			}
			pattern := "*"
			if len(args) > 0 {
				pattern, args = args[0], args[1:]
			}
			if len(args) > 0 {
				return fault.Usagef("%.64q after PATTERN: want one pattern, in quotes so that the shell does not expand it to file names", args[0])
			}
			if err := client.Scan(pattern, nil).Check(); err != nil {
				return &fault.UsageError{Err: err}
			}
			d := &differ{app: a, pattern: pattern, seen: make(map[string]int)}
			if file != "" {
				return d.withFile(cmd.Context(), file)
			}
			other, err := a.InContext(cmd.Context(), cmd.Flags(), string(to), "--to")
			if err != nil {
				return err
			}
			return d.withStore(cmd.Context(), other, string(to))
		},
	}
	cmd.Flags().Var(&to, "to", "compare with the store of `CONTEXT`")
	// The only error is that the flag does not exist.
	_ = cmd.RegisterFlagCompletionFunc("to", complete.ContextNames(a))
	return cmd
}

// A differ compares keys.
type differ struct {
	app     *app.App
	pattern string
	began   time.Time

	// seen has the keys of the old side: for a file, the last line with the key. The
	// goroutine that reads the old side owns seen until the old side has ended.
	seen map[string]int

	compared atomic.Int64 // read by the goroutine of the progress too
	sum      format.DiffSummary
	refused  error // of the first key that could not be read
}

func (d *differ) withFile(ctx context.Context, name string) error {
	// Opening a pipe would wait for its writer.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fault.Usagef("%s: want a regular file, which is read twice", format.BriefWord(name))
	}
	file, err := os.Open(name)
	if err != nil {
		usage := &fault.UsageError{Err: err}
		if all, _, loadErr := config.Load(d.app.Flags, d.app.Env); loadErr == nil && slices.Contains(all.Names(), name) {
			usage.Hint = "sscli diff --to " + format.ShWord(name)
		}
		return usage
	}
	defer file.Close()
	for e, err := range lineinput.Entries(ctx, file, 1) {
		if err != nil {
			return err
		}
		d.seen[e.Key] = e.Line
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return &fault.UsageError{Err: err}
	}
	return d.app.WithSession(ctx, func(s *client.Session, o client.Options) error {
		return d.run(ctx, bulkread.NewStore(d.app, s, o.Timeout), d.fileEntries(file))
	})
}

// fileEntries returns the lines of a file. If several lines have the same key, the last one
// counts, as in an import.
func (d *differ) fileEntries(file io.Reader) bulkread.Keys {
	return func(ctx context.Context, _ *bulkread.Store, add func(bulkread.Entry) error) error {
		for line, err := range lineinput.Entries(ctx, file, 1) {
			if err != nil {
				return err
			}
			if d.seen[line.Key] != line.Line {
				continue
			}
			old := bulkread.Entry{GetResult: client.GetResult{Found: line.Found, Value: line.Value}}
			if err := add(bulkread.Entry{Key: line.Key, Old: &old}); err != nil {
				return err
			}
		}
		return nil
	}
}

func (d *differ) withStore(ctx context.Context, other *app.App, name string) error {
	return d.app.WithSession(ctx, func(s *client.Session, o client.Options) error {
		var inner error
		err := other.WithSession(ctx, func(otherSession *client.Session, otherOptions client.Options) error {
			old := bulkread.NewStore(d.app, s, o.Timeout)
			now := bulkread.NewStore(d.app, otherSession, otherOptions.Timeout)
			now.Context = name
			inner = d.run(ctx, now, d.storeEntries(old))
			return nil
		})
		if err != nil && !fault.IsA[*config.Error](err) { // which names the context itself
			err = fmt.Errorf("context %s: %w", name, err)
		}
		return errors.Join(inner, err)
	})
}

// storeEntries returns the entries of the old store, each key once. Unlike the lines of a file, Old
// has its Key.
func (d *differ) storeEntries(s *bulkread.Store) bulkread.Keys {
	return func(ctx context.Context, _ *bulkread.Store, add func(bulkread.Entry) error) error {
		noFlush := func() error { return nil }
		return s.Each(ctx, bulkread.Scan(d.pattern), noFlush, func(old bulkread.Entry) error {
			if _, twice := d.seen[old.Key]; twice {
				return nil
			}
			d.seen[old.Key] = 0
			return add(bulkread.Entry{Key: old.Key, Old: &old})
		})
	}
}

// run compares the old side with a store, the new side, and prints the differences and a
// summary.
func (d *differ) run(ctx context.Context, now *bulkread.Store, old bulkread.Keys) error {
	d.began = time.Now()
	end := bulkread.Progress(d.app, false, func() string { return fmt.Sprintf("%d keys compared", d.compared.Load()) })
	err := now.Each(ctx, old, d.app.Flush, d.compare)
	if err == nil {
		err = now.Each(ctx, d.addedKeys, d.app.Flush, d.compare)
	}
	end()
	if d.sum.Elapsed = time.Since(d.began); !d.app.Settings.Quiet {
		d.app.Say(d.sum)
	}
	switch {
	case err != nil:
		return err
	case d.refused != nil:
		return d.refused
	case d.sum.Added+d.sum.Removed+d.sum.Changed > 0:
		return fault.ErrNo
	}
	return nil
}

// addedKeys returns the keys of the new side that the old side does not have.
func (d *differ) addedKeys(ctx context.Context, now *bulkread.Store, add func(bulkread.Entry) error) error {
	return bulkread.Scan(d.pattern)(ctx, now, func(key bulkread.Entry) error {
		if _, known := d.seen[key.Key]; known {
			return nil
		}
		d.seen[key.Key] = 0
		key.Old = new(bulkread.Entry)
		return add(key)
	})
}

// compare counts a key and prints the difference between now and now.Old, if there is one.
func (d *differ) compare(now bulkread.Entry) error {
	d.compared.Add(1)
	old := now.Old
	if err := cmp.Or(old.Err, now.Err); err != nil {
		d.sum.Refused++
		bulkread.Refuse(d.app, &d.refused, err)
		return nil
	}
	switch {
	case old.Key != "" && !old.Found: // SCAN listed the key, and GET did not find it
		d.sum.Saw(now.Key, true)
	case old.WrittenSince(d.began), now.WrittenSince(d.began):
		d.sum.Saw(now.Key, false)
	}
	if old.Found && now.Found && bytes.Equal(old.Value, now.Value) {
		d.sum.Equal++
		return nil
	}
	found := format.Difference{Key: now.Key, OldVersion: app.Version(old.Version), NewVersion: app.Version(now.Version)}
	if old.Found {
		found.Old = append([]byte{}, old.Value...) // never nil, which is a missing key
	}
	if now.Found {
		found.New = append([]byte{}, now.Value...)
	}
	switch {
	case found.Old == nil && found.New == nil:
		return nil
	case found.Old == nil:
		d.sum.Added++
		found.Change = "added"
	case found.New == nil:
		d.sum.Removed++
		found.Change = "removed"
	default:
		d.sum.Changed++
		found.Change = "changed"
		found.Fields = jsonfield.Changes(found.Old, found.New)
	}
	return d.app.Queue(found)
}
