package batch

import (
	"context"
	"errors"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/set"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// LoadOptions are the options of [Load].
type LoadOptions struct {
	Name      string    // of the command, for questions and hints
	Set       set.Flags // of every key
	Inflight  int       // lines under way; at least 1
	From      int       // the first line; at least 1
	KeepGoing bool      // continue after an error
	Newer     bool      // read each key whose line has a version, to count the newer values that are overwritten
}

// Load sets the keys in a file of JSON lines, or in standard input for "-", as batch --load does,
// but prints no results. It returns the counts even with an error, which is the first error in the
// order of the lines. A "no" is only counted. ran is false if no line was read.
func Load(ctx context.Context, a *app.App, from string, o LoadOptions) (sum format.BatchSummary, ran bool, err error) {
	if err := checkRange(o.Inflight, o.From); err != nil {
		return sum, false, err
	}
	b := newBatch(a, batchFlags{LoadOptions: o, load: true, silent: true})
	err = b.runFrom(ctx, from)
	if errors.Is(err, fault.ErrNo) {
		err = nil
	}
	return b.summary.result, b.ran, err
}

// checkRange checks --inflight and --from-line.
func checkRange(inflight, from int) error {
	if inflight < 1 || inflight > maxInflight {
		return fault.Usagef("--inflight %d: must be 1 to %d", inflight, maxInflight)
	}
	if from < 1 {
		return fault.Usagef("--from-line %d: must be at least 1", from)
	}
	return nil
}
