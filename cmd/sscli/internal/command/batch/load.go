package batch

import (
	"context"
	"errors"
	"os"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// LoadOptions are the options of [Load].
type LoadOptions struct {
	Name      string        // name of the command, for questions and hints
	Set       verb.SetFlags // apply to every key
	Inflight  int           // maximum number of lines in flight, at least 1
	From      int           // number of the first line to run, from 1
	KeepGoing bool          // continue after an error
	Newer     bool          // count overwritten values that were newer than the line's version
}

// Check returns a usage error for options that [Load] refuses.
func (o LoadOptions) Check(a *app.App) error {
	if err := checkRange(o.Inflight, o.From); err != nil {
		return err
	}
	_, err := o.Set.Options(a.Env)
	return err
}

// CheckLines returns the first mistake in any line of a file. It returns nil if KeepGoing is set, or if the
// file is not a regular one, which cannot be read twice.
func (o LoadOptions) CheckLines(ctx context.Context, file *os.File) error {
	if o.KeepGoing || !isRegular(file) {
		return nil
	}
	for _, err := range lineinput.Entries(ctx, again(file), o.From) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Load sets keys from a file of JSON lines, or from standard input ("-"), as batch --load does, but
// prints no results. It returns the first error in the order of the lines; a "no" is not an error. sum
// is valid even after an error. ran is false if Load failed before it read the first line.
func Load(ctx context.Context, a *app.App, from string, o LoadOptions) (sum format.BatchSummary, ran bool, err error) {
	if err := o.Check(a); err != nil {
		return sum, false, err
	}
	b := newBatch(a, batchFlags{LoadOptions: o, load: true, silent: true})
	err = b.runFrom(ctx, from)
	if errors.Is(err, fault.ErrNo) {
		err = nil
	}
	return b.summary.result, b.ran, err
}

func checkRange(inflight, from int) error {
	if inflight < 1 || inflight > maxInflight {
		return fault.Usagef("--inflight %d: must be 1 to %d", inflight, maxInflight)
	}
	if from < 1 {
		return fault.Usagef("--from-line %d: must be at least 1", from)
	}
	return nil
}
