package datasetcmd

import (
	"cmp"
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

func newDiff(a *app.App) *cobra.Command {
	var on pathFlag
	var f readFlags
	cmd := &cobra.Command{
		Use:   "diff KEY FILE|-",
		Short: "Compare a data set with a file, by record",
		Long: `Print the records that differ between the value of KEY (old) and a file (new), which is
read as by sscli dataset load. The exit code is 1 if any record differs, or if the records
that both have are in a different order, and 0 otherwise.

A record is added (+), removed (-) or, with --on, changed (~). With --on, the n-th record
with a value of FIELD is compared with the n-th record with that value on the other side.
Without --on, a changed record is shown as removed and added. The raw form is added,
removed or changed, the old and the new line, and the old and the new record, separated by
tabs.`,
		Example:           "  sscli dataset diff device-metadata devices.csv --on deviceId",
		Args:              usage.ExactArgs("KEY", config.FileValue),
		ValidArgsFunction: keyThenFile(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return diff(cmd.Context(), a, args[0], args[1], on.path, &f)
		},
	}
	fs := cmd.Flags()
	fs.Var(&on, "on", "the `FIELD` by which records are paired")
	f.bind(fs)
	return cmd
}

// diff prints how the records of a file differ from the records of a key.
func diff(ctx context.Context, a *app.App, key, file string, on dataset.Path, f *readFlags) error {
	if err := client.Get(key).Check(); err != nil {
		return &fault.UsageError{Err: err}
	}
	o, err := f.options(file)
	if err != nil {
		return err
	}
	source, size, err := open(ctx, a, file)
	if err != nil {
		return err
	}
	defer source.Close()
	defer app.SaveMemory(size)()
	old, _, err := read(ctx, a, key)
	if err != nil {
		return err
	}
	d, err := dataset.NewDiff(old, on)
	if err != nil {
		return notDataset(key, err)
	}
	counts, err := compare(d, on, dataset.Read(files.Limit(source, files.MaxValue), o), func(c dataset.Change) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return a.Queue(changeOf(key, c))
	})
	if err = cmp.Or(err, a.Flush()); err != nil {
		return err
	}
	if *o.Skipped > 0 {
		a.Inform(dataset.SkippedRows(*o.Skipped))
	}
	a.Summarize(format.DatasetSummary{Key: key, DatasetCounts: counts})
	return fault.NoIf(counts.Added+counts.Removed+counts.Changed > 0 || counts.Reordered)
}

func changeOf(key string, c dataset.Change) format.DatasetChange {
	r := format.DatasetChange{Key: key, Change: "changed", OldLine: c.Old.Line, Line: c.New.Line, Old: c.Old.JSON, New: c.New.JSON}
	switch {
	case c.Old.JSON == nil:
		r.Change = "added"
	case c.New.JSON == nil:
		r.Change = "removed"
	default:
		r.Fields = jsonfield.Changes(c.Old.JSON, c.New.JSON)
	}
	return r
}

// compare compares the new records, now, with the old records in d. It counts the changes, and calls
// do with each change.
func compare(d *dataset.Diff, on dataset.Path, now iter.Seq2[dataset.Record, error], do func(dataset.Change) error) (format.DatasetCounts, error) {
	counts := format.DatasetCounts{On: on.String()}
	for r, err := range now {
		if err != nil {
			return counts, err
		}
		c, differs := d.Add(r)
		switch {
		case !differs:
			counts.Equal++
			continue
		case c.Old.JSON == nil:
			counts.Added++
		default:
			counts.Changed++
		}
		if err := do(c); err != nil {
			return counts, err
		}
	}
	for c := range d.Removed() {
		counts.Removed++
		if err := do(c); err != nil {
			return counts, err
		}
	}
	counts.Reordered = d.Reordered()
	return counts, nil
}
