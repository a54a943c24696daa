// Package importcmd is the command `sscli import`, which sets keys from JSON Lines. It is not named
// import, which is a Go keyword. Package batch loads the lines.
package importcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/command/batch"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

// New returns the command `sscli import`.
func New(a *app.App) *cobra.Command {
	o := batch.LoadOptions{Name: "import"}
	var onlyNew, dryRun bool
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Set.Bind(set)
	cmd := &cobra.Command{
		Use:     "import FILE|-",
		Short:   "Set keys from JSON Lines",
		GroupID: app.GroupFiles,
		Long: `Set keys to values from a file that sscli export wrote, or from standard input (-). Each
line is a JSON object with key and value, as get -o json prints it; lines of keys that
were missing (found is false) are skipped. Every key gets a new version. Other keys are
left alone. FILE may also be the statestore.json of Microsoft's development environment
for WASM modules.

If a line has a version, import reads its key before the write. At the end, a warning says
how many overwritten values were different and had a newer version than their line, not
counting values that the import itself wrote. --dry-run counts them in advance.

All lines of a FILE are checked before the first write, unless --keep-going is set. On
standard input, a mistake after the first write gives exit code 14.

The first error stops the import and gives the exit code. Up to --inflight later lines may
be in flight at that time; import completes them. stderr shows the line to continue from
(--from-line) and how many later lines are already done. After a lost connection, each
line is reported as applied, refused or unknown, as in a batch.

The result is one line with the number of keys. The raw form has six numbers, separated by
tabs. Five count the lines that were applied, left alone (--only-new), refused, of unknown
outcome, and skipped. The last is the line to continue from, or 0.

--dry-run sends no write. It reads each key and prints what would happen: create, replace,
same (the key holds this value already, and would get a new version), exists (--only-new
leaves it alone) or skip. Earlier lines count as written. The raw form is this word, KEY
and VERSION. Only a write can show whether a fencing token passes.`,
		Example:           "  sscli import backup.jsonl --dry-run\n  sscli import backup.jsonl\n  sscli import defaults.jsonl --only-new\n  sscli import backup.jsonl --from-line 1201",
		Args:              usage.ExactArgs(config.FileValue),
		ValidArgsFunction: complete.Files,
		RunE: func(cmd *cobra.Command, args []string) error {
			if onlyNew {
				if err := set.Set("nx", "true"); err != nil {
					return err
				}
			}
			if dryRun {
				return dryRunFile(cmd.Context(), a, args[0], o, onlyNew)
			}
			o.Newer = !onlyNew
			sum, ran, err := batch.Load(cmd.Context(), a, args[0], o)
			if ran {
				err = errors.Join(err, a.Emit(format.ImportSummary{Batch: sum}))
			}
			if sum.Newer > 0 {
				a.Warn(format.Count(sum.Newer, "overwritten value") + " had a newer version than the file has")
			}
			if ran && sum.Resume > 0 {
				a.Advise(stopped(sum), suggest.Try(fmt.Sprintf("the same command with `--from-line %d`", sum.Resume)))
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&dryRun, "dry-run", false, "print what would be done, and write nothing")
	fs.BoolVar(&onlyNew, "only-new", false, "set only keys that do not exist (NX)")
	fs.AddFlag(set.Lookup("fence"))
	fs.BoolVar(&o.KeepGoing, "keep-going", false, "continue after an error")
	fs.IntVar(&o.Inflight, "inflight", 64, "keep up to `N` writes in flight")
	fs.IntVar(&o.From, "from-line", 1, "begin with line `N`")
	return cmd
}

// stopped returns a text that says where an import stopped, and how many later lines are done: applied,
// or left alone because the key exists.
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
		outcome = "failed" // the error of the line says how
	}
	were := "were"
	if later == 1 {
		were = "was"
	}
	return fmt.Sprintf("line %d %s; %s %s done already", sum.Resume, outcome, format.Count(later, "later line"), were)
}

// dryRunFile prints what an import of a file would do. from is the file's name, or "-" for standard
// input.
func dryRunFile(ctx context.Context, a *app.App, from string, o batch.LoadOptions, onlyNew bool) error {
	if err := o.Check(a); err != nil {
		return err
	}
	source, end, err := a.Open(ctx, from, "import")
	if err != nil {
		return err
	}
	defer end()
	if file, ok := source.(*os.File); ok && from != "-" {
		if err := o.CheckLines(ctx, file); err != nil {
			return err
		}
	}
	p := plan{app: a, onlyNew: onlyNew, written: make(map[exchange.Digest]exchange.Digest)}
	began := time.Now()
	return a.WithSession(ctx, func(s *client.Session, _ client.Options) error {
		lines := func(ctx context.Context, _ *exchange.Store, add func(exchange.Entry) error) error {
			for e, err := range lineinput.Entries(ctx, source, o.From) {
				if err != nil && (!o.KeepGoing || ctx.Err() != nil) {
					return err
				}
				line := exchange.Entry{Key: e.Key, GetResult: client.GetResult{Found: e.Found, Value: e.Value}}
				line.Version, _ = client.ParseVersion(e.Version) // zero if the line has no version
				if err := add(exchange.Entry{Key: e.Key, Old: &line, Err: err}); err != nil {
					return err
				}
			}
			return nil
		}
		p.session = s
		store := exchange.NewBulk(a, s)
		if err := store.Each(ctx, lines, a.Flush, p.add); err != nil {
			return err
		}
		p.sum.Elapsed = time.Since(began)
		a.Summarize(format.DryRunSummary{Batch: p.sum})
		return p.refused
	})
}

type plan struct {
	app     *app.App
	session *client.Session
	onlyNew bool
	written map[exchange.Digest]exchange.Digest // the keys of earlier lines, each with the value that it would hold
	sum     format.BatchSummary
	refused error // the first error about a single line
}

// add prints what the import would do with one line. now holds the key's state in the store, and
// now.Old holds the entry on the line.
func (p *plan) add(now exchange.Entry) error {
	if now.Err == nil && now.Old.Found {
		now.Err = verb.CheckSize(p.session, client.Set(now.Key, now.Old.Value))
	}
	if now.Err != nil {
		if err := p.app.Flush(); err != nil { // print earlier results before the error
			return err
		}
		p.sum.Refused++
		p.app.Refuse(&p.refused, now.Err)
		return nil
	}
	key, value := exchange.DigestOf([]byte(now.Key)), exchange.DigestOf(now.Old.Value)
	holds, written := p.written[key]
	if !written {
		holds = exchange.DigestOf(now.Value)
	}
	result := format.ImportPlan{Key: now.Key, Version: now.Version, Missing: !now.Found}
	switch {
	case !now.Old.Found:
		result.Action = "skip"
		p.sum.Skipped++
		return p.app.Queue(result)
	case !now.Found && !written:
		result.Action = "create"
	case p.onlyNew:
		result.Action = "exists"
		p.sum.No++
		return p.app.Queue(result)
	case holds == value:
		result.Action = "same"
	default:
		result.Action = "replace"
		if !written && !now.Old.Version.IsZero() && now.Version.Compare(now.Old.Version) > 0 {
			p.sum.Newer++
		}
	}
	p.sum.Applied++
	p.written[key] = value
	return p.app.Queue(result)
}
