package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/batch"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// defaultInflight is the number of writes under way, unless --inflight says otherwise.
const defaultInflight = 64

// NewImport returns the command `sscli import`.
func NewImport(a *app.App) *cobra.Command {
	o := batch.LoadOptions{Name: "import"}
	var onlyNew, dryRun bool
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Set.Bind(set)
	cmd := &cobra.Command{
		Use:     "import FILE|-",
		Short:   "Set keys from JSON Lines",
		GroupID: app.GroupStore,
		Long: `Set keys to values from a file that sscli export wrote, or from standard input (-). Each
line is a JSON object with key and value, as get -o json prints it; lines of keys that
were missing (found is false) are skipped. Versions in the file are not used: every key
gets a new one. Other keys are left alone.

The first error stops the import and gives the exit code. Up to --inflight later lines
are under way then; they are still carried out. stderr says from which line to continue
(--from-line) and how many later lines were done already. After a lost connection each
line is reported as applied, refused or unknown, as in a batch.

The result is one line with the number of keys. The raw form has, separated by tabs, the
numbers of lines that were applied, exist already (--only-new), were refused, are unknown
and were skipped, and the line to continue from or 0.

--dry-run sends no write. It reads each key and prints what would happen: create,
replace, same (the key holds this value already, and would get a new version), exists
(--only-new leaves it alone) or skip. The raw form is that word, KEY and VERSION.
Whether a fencing token would pass cannot be known without writing.`,
		Example: "  sscli import backup.jsonl --dry-run\n  sscli import backup.jsonl\n  sscli import defaults.jsonl --only-new\n  sscli import backup.jsonl --from-line 1201",
		Args:    app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if onlyNew {
				if err := set.Set("nx", "true"); err != nil {
					return err
				}
			}
			if dryRun {
				return plan(a, cmd.Context(), app.Unprotect(args[0]), o, onlyNew)
			}
			sum, ran, err := batch.Load(a, cmd.Context(), args[0], o)
			if ran {
				err = errors.Join(err, a.Emit(format.ImportSummary{Batch: sum}))
			}
			if ran && sum.Resume > 0 {
				a.Warn(stopped(sum), fmt.Sprintf("the same command with --from-line %d", sum.Resume))
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&dryRun, "dry-run", false, "print what would be done, and write nothing")
	fs.BoolVar(&onlyNew, "only-new", false, "set only keys that do not exist (NX)")
	fs.AddFlag(set.Lookup("fence"))
	fs.BoolVar(&o.KeepGoing, "keep-going", false, "continue after an error")
	fs.IntVar(&o.Inflight, "inflight", defaultInflight, "keep up to `N` writes under way")
	fs.IntVar(&o.From, "from-line", 1, "begin with line `N`")
	return cmd
}

// stopped says where an import with a line to continue from stopped. Lines that were under way
// then have had their results, and count as done if they were applied or exist already.
func stopped(sum format.BatchSummary) string {
	later := 0
	for _, r := range sum.Ahead {
		later += r.Last - r.First + 1
	}
	if later == 0 {
		return fmt.Sprintf("the import stopped at line %d", sum.Resume)
	}
	outcome := "was refused"
	if sum.Unknown > 0 || sum.Refused == 0 {
		outcome = "failed" // its error says how
	}
	were := "were"
	if later == 1 {
		were = "was"
	}
	return fmt.Sprintf("line %d %s; %s %s done already", sum.Resume, outcome, format.Count(later, "later line"), were)
}

// fileSide returns the lines of a file of JSON lines, from line first on, as one side of a
// comparison.
func fileSide(ctx context.Context, source io.Reader, first int) iter.Seq2[side, error] {
	return func(yield func(side, error) bool) {
		for e, err := range batch.Entries(ctx, source, first) {
			if !yield(side{key: e.Key, here: e.Found, value: e.Value, line: e.Line}, err) {
				return
			}
		}
	}
}

// plan prints what an import would do.
func plan(a *app.App, ctx context.Context, from string, o batch.LoadOptions, onlyNew bool) error {
	source := a.Stdin
	if from != "-" {
		file, err := os.Open(from)
		if err != nil {
			return &fault.UsageError{Err: err}
		}
		defer file.Close()
		source = file
	} else if a.Shell != nil {
		_, err := a.Stdin.Read(nil) // its error says why a shell has no standard input
		return &fault.UsageError{Err: err, Hint: "import FILE"}
	}
	began := time.Now()
	return a.WithSession(ctx, func(s *client.Session, options client.Options) error {
		pairs := compare(ctx, s, fileSide(ctx, source, o.From), readOptions(a, options))
		defer pairs.close()
		var sum format.BatchSummary
		var refused error
		for {
			if !pairs.r.Ready() {
				if err := a.Flush(); err != nil {
					return err
				}
			}
			p, err := pairs.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return errors.Join(a.Flush(), err)
			}
			result := format.ImportPlan{Key: p.key, Version: app.Version(p.now.Version)}
			switch {
			case p.now.Err != nil:
				sum.Refused++
				verb.Refuse(a, &refused, p.key, p.now.Err)
				continue
			case !p.old.here:
				result.Action = "skip"
				sum.Skipped++
			case !p.now.Found:
				result.Action = "create"
				sum.Applied++
			case onlyNew:
				result.Action = "exists"
				sum.No++
			case bytes.Equal(p.old.value, p.now.Value):
				result.Action = "same"
				sum.Applied++
			default:
				result.Action = "replace"
				sum.Applied++
			}
			if err := a.Queue(result); err != nil {
				return err
			}
		}
		if err := a.Flush(); err != nil {
			return err
		}
		if sum.Elapsed = time.Since(began); !a.Settings.Quiet {
			a.Say(format.DryRunSummary{Batch: sum})
		}
		return refused
	})
}
