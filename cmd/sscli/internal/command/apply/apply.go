// Package apply is the command `sscli apply`, which sets keys to the values in source files.
//
// [New] returns the command. A [round] reads the keys that the sources name, and writes the keys
// whose values differ. With --every, a [keeper] repeats the round, and watches keys to begin the
// next round early.
package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/sources"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/glob"
)

type flags struct {
	prefix, prune        config.Text
	every                usage.Duration
	pruneAll, allowEmpty bool
	follow               bool
	dryRun, diff         bool
	set                  verb.SetFlags // for --fence
	pattern              *glob.Pattern // of --prune
}

// New returns the command `sscli apply`.
func New(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "apply SOURCE...",
		Short:   "Set keys to the values in files",
		GroupID: app.GroupFiles,
		Long: `Read the keys of the sources, and set the keys that are missing or differ. For each key,
print what was done: created, changed, unchanged, or conflict. A second apply changes
nothing.

A SOURCE is
    FILE       what sscli export writes, or a statestore.json
    DIR        a file for each key: the key is the path below DIR. A .csv or .jsonl file
               is a data set: its key has no extension, and its value is JSON Lines.
               Names that begin with a dot are left out. A link must lead to a file in DIR,
               and a file of a manifest must be in its directory, unless --follow is set.
    FILE.csv   a data set
    FILE.yaml  a manifest: below the word keys: a list of entries, each with a key, with a
               value, a file or a dataset, and optionally with persist: true, ttl: 30s, and
               separator: ";" for a dataset
    -          standard input, like FILE
If several sources or lines have the same key, the last one counts. A key whose line says
that it was missing (found is false) is left alone, also by --prune. --prefix is put before
keys that are named after files.

All sources are read before the first write, so a mistake in one of them changes nothing. If
a source changes or goes away after that, the exit code is 14: writes were made.
The store cannot compare and set, so apply writes each key right after it has read the
key, and creates a missing key with NX. If another client has created the key in between,
that is a conflict: apply leaves the key alone, and the exit code is 1.

--prune PATTERN deletes the keys that match PATTERN and are not in the sources. It reads
them, asks, and leaves those alone that were written since. --yes confirms in advance.
Beware of locks, which are keys too. A source without a key, such as an empty directory or
the output of a command that ended early, prunes nothing: it is an error, unless
--prune-all is set. So are sources of which no key matches PATTERN, such as files without
their --prefix. If more than half of the keys that match are to be deleted, apply says how
many.

--dry-run writes nothing, and prints create, change, delete or unchanged. --diff prints
how each key differs, as sscli diff does, from the store (old) to the sources (new).

--every INTERVAL repeats this until it is interrupted: each time, apply reads the sources
again and prints a line for each change. It watches up to ` + fmt.Sprint(sources.MaxFirst) + ` of the keys. When one of them
changes, or after a lost connection, it does not wait for the interval. While a source that
held keys is empty or cannot be read, as a volume that is not mounted, nothing is written.

The store says neither when a key expires nor whether it persists. So a key that holds its
value is unchanged, even if its ttl or persist differs from the source.`,
		Example: "  sscli apply site.yaml\n  sscli apply settings/ --prefix config/ --prune 'config/*' --dry-run --diff\n  sscli apply defaults/ site.yaml --every 1m",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), a, args)
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.set.Bind(all)
	fs := cmd.Flags()
	fs.Var(&f.prefix, "prefix", "put `PREFIX` before keys that are named after files")
	fs.Var(&f.prune, "prune", "delete the keys that match `PATTERN` and are not in the sources")
	fs.BoolVar(&f.pruneAll, "prune-all", false, "prune even if a source holds no key, or no key of the sources matches")
	fs.BoolVar(&f.allowEmpty, "allow-empty", false, "accept data sets without records")
	fs.BoolVar(&f.follow, "follow", false, "follow links out of DIR, and accept files outside the directory of a manifest")
	fs.BoolVar(&f.dryRun, "dry-run", false, "print what would be done, and write nothing")
	fs.BoolVar(&f.diff, "diff", false, "print how each key differs")
	fs.Var(f.every.Least(usage.Positive), "every", "repeat at this `INTERVAL`, and at once when a watched key changes")
	fs.AddFlag(all.Lookup("fence"))
	return cmd
}

func (f *flags) run(ctx context.Context, a *app.App, names []string) error {
	if len(names) == 0 {
		return fault.Usagef("missing SOURCE: expected a file, a directory or a manifest")
	}
	if err := f.check(a); err != nil {
		return err
	}
	if f.every.Given() {
		a.LogsResults = true
		if err := a.NeverWait(); err != nil {
			return err
		}
	}
	defer app.CollectMore()()
	p := plan{app: a, flags: f, names: names, held: make(map[string]bool)}
	if err := p.open(ctx); err != nil {
		return err
	}
	if !f.dryRun {
		if err := a.Confirm(ctx, "apply "+strings.Join(names, " ")); err != nil {
			return err
		}
	}
	return a.WithSession(ctx, func(s *client.Session, _ client.Options) error {
		p.session = s
		if !f.every.Given() {
			r := p.newRound(false)
			return r.run(ctx)
		}
		k := keeper{plan: &p, every: f.every.Duration, outage: app.Outage{Notify: a.Notify}}
		return k.run(ctx)
	})
}

func (f *flags) check(a *app.App) (err error) {
	if _, err := f.set.Options(a.Env); err != nil {
		return err
	}
	if f.prune != "" {
		if err := client.Scan(string(f.prune), nil).Check(); err != nil {
			return &fault.UsageError{Err: fmt.Errorf("--prune: %w", err)}
		}
		if f.pattern, err = usage.Pattern("--prune", string(f.prune)); err != nil {
			return err
		}
	}
	switch {
	case f.pruneAll && f.prune == "":
		return fault.Usagef("--prune-all without --prune: expected --prune PATTERN as well")
	case f.every.Given() && f.dryRun:
		return fault.Usagef("--every together with --dry-run: use only one of them")
	case f.every.Given() && f.prune != "" && !a.Settings.Yes:
		return &fault.UsageError{
			Err:  fmt.Errorf("--every together with --prune: nobody can be asked each time"),
			Hint: suggest.Try("`--yes`, after a look at what --dry-run prints"),
		}
	}
	return nil
}

// A plan holds what all rounds share: the flags, the session and the sources.
type plan struct {
	app     *app.App
	flags   *flags
	names   []string // the SOURCE operands
	session *client.Session

	held map[string]bool // the sources that held keys once

	stdin *string      // standard input, if it is a source; nil = not read yet
	set   *sources.Set // the keys of the sources, as of the last open
}

// open reads the sources. It reads standard input only once, for all rounds. It returns an error if a
// source holds no key, and used to hold keys or decides what is pruned.
func (p *plan) open(ctx context.Context) error {
	read := func(ctx context.Context) (text string, err error) {
		if p.stdin == nil {
			p.app.Streaming = true
			text, err = p.app.ReadKeys(ctx)
			p.stdin = &text
		}
		return *p.stdin, err
	}
	o := sources.Options{Prefix: string(p.flags.prefix), Stdin: read, Follow: p.flags.follow, AllowEmpty: p.flags.allowEmpty}
	if p.flags.pattern != nil {
		o.Match = func(key string) bool { return p.flags.pattern.Match([]byte(key)) }
	}
	if p.set == nil { // not in each round
		o.Inform = p.app.Inform
	}
	set, err := sources.Open(ctx, p.names, o)
	if err != nil {
		return err
	}
	for _, name := range set.Empty() {
		shown := format.Path(name)
		if name == "-" {
			shown = "standard input"
		}
		switch {
		case p.flags.pruneAll:
		case p.flags.prune != "":
			return &fault.UsageError{
				Err:  fmt.Errorf("%s holds no key, so --prune would delete too much: nothing was written", shown),
				Hint: suggest.Try("a source with keys; `--prune-all` to prune nevertheless"),
			}
		case p.held[name]:
			return fault.Usagef("%s holds no key any more: nothing was written", shown)
		case p.set == nil:
			p.app.Warn(shown + " holds no key")
		}
	}
	if p.flags.pattern != nil && !p.flags.pruneAll && set.Matching() == 0 {
		pattern := format.BriefWord(string(p.flags.prune))
		such := ""
		if first := set.First(); len(first) > 0 {
			such = ", such as " + format.BriefWord(first[0]) + ","
		}
		return &fault.UsageError{
			Err:  fmt.Errorf("no key of the sources%s matches %s, so --prune would delete every key that does: nothing was written", such, pattern),
			Hint: suggest.Try("`--prefix PREFIX` for keys that are named after files; `--prune-all` to prune nevertheless"),
		}
	}
	for _, name := range p.names {
		p.held[name] = p.held[name] || !slices.Contains(set.Empty(), name)
	}
	p.set = set
	return nil
}

// newRound returns a round. If timed is true, the results of the round show the time, and unchanged
// keys have no result.
func (p *plan) newRound(timed bool) *round {
	r := &round{plan: p, timed: timed, began: time.Now()}
	r.sum.DryRun = p.flags.dryRun
	return r
}
