package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
	"github.com/sscli/sscli/cmd/sscli/internal/command/batch"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// NewDiff returns the command `sscli diff`.
func NewDiff(a *app.App) *cobra.Command {
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
of the store count as added.

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
			args = app.UnprotectAll(args)
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
			other, err := app.InContext(cmd.Context(), a, cmd.Flags(), string(to), "--to")
			if err != nil {
				return err
			}
			return d.withStore(cmd.Context(), other, string(to))
		},
	}
	cmd.Flags().Var(&to, "to", "compare with the store of `CONTEXT`")
	// An error says that there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc("to", func(cmd *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
		return complete.ContextNames(a, cmd, part)
	})
	return cmd
}

// A differ compares keys.
type differ struct {
	app     *app.App
	pattern string
	began   time.Time

	// seen has the keys of the old side: for a file, the last line with the key. The
	// goroutine that reads the old side owns it until the old side has ended.
	seen map[string]int
	// newName returns an error that names the store of the new side. nil if there is only one
	// store.
	newName func(error) error

	compared atomic.Int64 // for the progress
	sum      format.DiffSummary
	refused  error // of the first key that could not be read
}

// withFile compares a file with the store.
func (d *differ) withFile(ctx context.Context, name string) error {
	// Before it is opened, which waits if it is a pipe.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fault.Usagef("%s: want a regular file, which is read twice", format.BriefWord(name))
	}
	file, err := os.Open(name)
	if err != nil {
		usage := &fault.UsageError{Err: err}
		if all, _, loadErr := config.Load(d.app.Flags, d.app.Env); loadErr == nil && slices.Contains(all.Names(), name) {
			usage.Hint = "sscli diff --to " + name
		}
		return usage
	}
	defer file.Close()
	for e, err := range batch.Entries(ctx, file, 1) {
		if err != nil {
			return err
		}
		d.seen[e.Key] = e.Line
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return &fault.UsageError{Err: err}
	}
	return d.app.WithSession(ctx, func(s *client.Session, o client.Options) error {
		return d.run(ctx, func(yield func(side, error) bool) {
			for line, err := range fileSide(ctx, file, 1) {
				// What an import leaves in the end is the last line with a key.
				if err == nil && d.seen[line.key] != line.line {
					continue
				}
				if !yield(line, err) {
					return
				}
			}
		}, s, readOptions(d.app, o))
	})
}

// withStore compares the store with another.
func (d *differ) withStore(ctx context.Context, other *app.App, name string) error {
	d.newName = func(err error) error { return fmt.Errorf("context %s: %w", name, err) }
	return d.app.WithSession(ctx, func(s *client.Session, o client.Options) error {
		var inner error
		err := other.WithSession(ctx, func(otherSession *client.Session, otherOptions client.Options) error {
			r := bulkread.Read(ctx, s, verb.ScanKeys(d.pattern), readOptions(d.app, o))
			defer r.Close()
			reading := readOptions(other, otherOptions)
			var outage app.Outage
			reading.Trouble = func(err error) {
				if err == nil {
					outage.Over(d.app, ", context "+name)
					return
				}
				outage.Trouble(d.app, d.newName(err), "connecting again")
			}
			inner = d.run(ctx, d.storeSide(r), otherSession, reading)
			return nil
		})
		if err != nil && !fault.IsA[*config.Error](err) { // which names the context itself
			err = d.newName(err)
		}
		return errors.Join(inner, err)
	})
}

// storeSide returns the keys of a reader as the old side, each once.
func (d *differ) storeSide(r *bulkread.Reader) iter.Seq2[side, error] {
	return func(yield func(side, error) bool) {
		for {
			e, err := r.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(side{}, verb.ReadError(e, err))
				return
			}
			if _, twice := d.seen[e.Key]; twice {
				continue
			}
			d.seen[e.Key] = 0
			if !yield(side{key: e.Key, here: e.Found, value: e.Value, version: e.Version, store: true, err: e.Err}, nil) {
				return
			}
		}
	}
}

// run compares the old side with a store, and prints the differences and a summary.
func (d *differ) run(ctx context.Context, old iter.Seq2[side, error], s *client.Session, o bulkread.Options) error {
	d.began = time.Now()
	end := progress(d.app, false, func() string { return fmt.Sprintf("%d keys compared", d.compared.Load()) })
	err := d.known(ctx, old, s, o)
	if err == nil {
		err = d.added(ctx, s, o)
	}
	if flushErr := d.app.Flush(); flushErr != nil && err == nil {
		err = flushErr
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

// known compares the keys of the old side.
func (d *differ) known(ctx context.Context, old iter.Seq2[side, error], s *client.Session, o bulkread.Options) error {
	pairs := compare(ctx, s, old, o)
	pairs.name = d.newName
	defer pairs.close()
	for {
		if !pairs.r.Ready() {
			if err := d.app.Flush(); err != nil {
				return err
			}
		}
		p, err := pairs.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := d.pair(p); err != nil {
			return err
		}
	}
}

// added reads the keys of the new side that the old one does not have.
func (d *differ) added(ctx context.Context, s *client.Session, o bulkread.Options) error {
	scan := verb.ScanKeys(d.pattern)
	r := bulkread.Read(ctx, s, func(r *bulkread.Reader) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for key, err := range scan(r) {
				if _, known := d.seen[key]; known && err == nil {
					continue
				}
				d.seen[key] = 0
				if !yield(key, d.ofNew(err)) {
					return
				}
			}
		}
	}, o)
	defer r.Close()
	for {
		if !r.Ready() {
			if err := d.app.Flush(); err != nil {
				return err
			}
		}
		e, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return d.ofNew(verb.ReadError(e, err))
		}
		if err := d.pair(pair{key: e.Key, now: e}); err != nil {
			return err
		}
	}
}

// ofNew returns an error about the new side, with its name.
func (d *differ) ofNew(err error) error {
	if err == nil || d.newName == nil {
		return err
	}
	return d.newName(err)
}

// pair counts a key and prints the difference, if there is one.
func (d *differ) pair(p pair) error {
	d.compared.Add(1)
	if p.old.err != nil || p.now.Err != nil {
		d.sum.Refused++
		if p.old.err != nil {
			verb.Refuse(d.app, &d.refused, p.key, p.old.err)
		} else {
			verb.Refuse(d.app, &d.refused, p.key, d.ofNew(p.now.Err))
		}
		return nil
	}
	switch {
	case p.old.store && !p.old.here:
		d.sum.Saw(p.key, true)
	case since(p.old.version, d.began), since(p.now.Version, d.began):
		d.sum.Saw(p.key, false)
	}
	found := format.Difference{Key: p.key, OldVersion: app.Version(p.old.version), NewVersion: app.Version(p.now.Version)}
	if p.old.here {
		found.Old = append([]byte{}, p.old.value...) // never nil, which is a missing key
	}
	if p.now.Found {
		found.New = append([]byte{}, p.now.Value...)
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
	case bytes.Equal(found.Old, found.New):
		d.sum.Equal++
		return nil
	default:
		d.sum.Changed++
		found.Change = "changed"
		found.Fields = jsonfield.Changes(found.Old, found.New)
	}
	return d.app.Queue(found)
}
