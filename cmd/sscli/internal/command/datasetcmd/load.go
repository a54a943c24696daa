package datasetcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
)

func newLoad(a *app.App) *cobra.Command {
	l := loader{app: a}
	var on pathFlag
	cmd := &cobra.Command{
		Use:   "load KEY FILE|-",
		Short: "Set a key to the records of a file",
		Long: `Set KEY to the records of a file, in the form that data flows read: JSON Lines, one record
a line.

FILE has JSON Lines, a JSON array of objects, or CSV with a header. Fields keep their
order, and numbers stay as they are written. In CSV, a cell that is a JSON number or
boolean becomes one (007 is text), an empty cell leaves its field out, and every other
cell is a string. A first line sep=; names the separator, and rows of separators only are
skipped. --types overrides this: --types serial=string,floor=number.

Before the write, stderr shows the number of records, the size, the types of the fields
and which records change. If --on names the field that the data flow compares, stderr also
shows records that no message can find: they lack the field, or repeat the value of an
earlier record.

The store cannot compare and set. load reads the key again right before it writes, and
writes nothing if another client has changed the key (exit code 1). If the key holds these
records already, nothing is written, unless --persist is set. After an error in the file
nothing is sent, and a file without records is an error, unless --allow-empty is set.`,
		Example: `  sscli dataset load device-metadata devices.csv --on deviceId
  sscli dataset load device-metadata devices.csv --types '*=string' --dry-run
  jq -c '.sites[]' export.json | sscli dataset load sites -`,
		Args:              usage.ExactArgs("KEY", config.FileValue),
		ValidArgsFunction: keyThenFile(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.key, l.file, l.survey.On = args[0], args[1], on.path
			return l.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.Var(&on, "on", "the `FIELD` that the data flow compares; load pairs records by it")
	l.reader.bind(fs)
	fs.BoolVar(&l.allowEmpty, "allow-empty", false, "accept a file without records, or without fields in them")
	fs.BoolVar(&l.dryRun, "dry-run", false, "print what would be written, and write nothing")
	fs.BoolVar(&l.persist, "persist", false, "ask the broker to keep the entry on disk")
	l.fence.Bind(fs)
	return cmd
}

// keyThenFile completes a key as the first operand and a file as the second.
func keyThenFile(a *app.App) cobra.CompletionFunc {
	keys := complete.Keys(a, 1)
	return func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return keys(cmd, args, part)
	}
}

// A loader sets a key to the records of a file.
type loader struct {
	app        *app.App
	key        string
	file       string
	reader     readFlags
	fence      verb.FenceFlags
	persist    bool
	dryRun     bool
	allowEmpty bool

	survey dataset.Survey
	value  string // the records of the file, as JSON Lines
}

func (l *loader) run(ctx context.Context) error {
	if err := client.Get(l.key).Check(); err != nil {
		return &fault.UsageError{Err: err}
	}
	if _, err := l.fence.Options(l.app.Env); err != nil { // check the flags before reading the file
		return err
	}
	if err := l.app.Settings.Broker(); err != nil {
		return err
	}
	if err := l.readFile(ctx); err != nil {
		return err
	}
	if !l.dryRun {
		if err := l.app.Confirm(ctx, "dataset load "+format.Brief(l.key)); err != nil {
			return err
		}
	}
	defer app.SaveMemory(len(l.value))()
	app.FreeMemory(len(l.value))
	l.app.RememberKey(l.key)
	return l.app.WithSession(ctx, func(s *client.Session, _ client.Options) error { return l.store(ctx, s) })
}

// readFile reads the records of the file into value and survey.
func (l *loader) readFile(ctx context.Context) error {
	o, err := l.reader.options(l.file)
	if err != nil {
		return err
	}
	source, size, err := open(ctx, l.app, l.file)
	if err != nil {
		return err
	}
	defer source.Close()
	var value strings.Builder
	value.Grow(size)
	if err := dataset.Copy(ctx, &value, source, o, &l.survey); err != nil {
		return err
	}
	if *o.Skipped > 0 {
		l.app.Inform(dataset.SkippedRows(*o.Skipped))
	}
	if len(l.survey.Fields) == 0 && !l.allowEmpty {
		return dataset.NoRecords(l.file)
	}
	l.survey.Done()
	if l.survey.On != nil && l.survey.Records > 0 && l.survey.Without.Count == l.survey.Records {
		var names []string
		for _, f := range l.survey.Fields {
			names = append(names, dataset.Path{f.Name}.String())
		}
		hint := suggest.Try("`--on` with one of the fields ").Then(format.Cut(strings.Join(names, ", "), 200))
		if near := suggest.Near(l.survey.On.String(), names); len(near) > 0 {
			hint = suggest.Run("--on", near[0])
		}
		return &fault.UsageError{
			Err:  fmt.Errorf("--on %s: no record has a string, a number or a boolean in this field", format.Word(l.survey.On.String())),
			Hint: hint,
		}
	}
	l.value = value.String()
	return nil
}

// store compares the records with the value of the key and prints the plan. It then writes the key,
// unless --dry-run is set or the write would change nothing.
func (l *loader) store(ctx context.Context, s *client.Session) error {
	before, err := verb.ReadKey(ctx, l.app, s, l.key)
	if err != nil {
		return err
	}
	state := verb.StateOf(before)
	plan := l.plan(before, s.MaxPacketSize())
	before.Value = nil
	app.FreeMemory(len(l.value))
	if l.dryRun {
		err = l.app.Emit(plan)
	} else {
		l.app.Summarize(format.DatasetPlanned{DatasetPlan: plan})
	}
	for _, text := range l.survey.Warnings() {
		l.app.Warn(text)
	}
	if err == nil && len(l.value) > plan.MaxPacket {
		err = &fault.UsageError{
			Err:  fmt.Errorf("the value has %d bytes, and the broker accepts packets of at most %d; nothing was written", len(l.value), plan.MaxPacket),
			Hint: suggest.Try("fewer or smaller records, split into several keys; or a larger maximum packet size at the broker"),
		}
	}
	if err != nil || l.dryRun {
		return err
	}
	if plan.Action == unchanged {
		l.app.Inform("unchanged, nothing was written")
		return nil
	}
	w := verb.Replacement{
		App: l.app, Session: s, Key: l.key, Before: state, Force: l.fence.Force,
		Fence: func() (client.WriteOptions, error) { return l.fence.Options(l.app.Env) },
		Changed: func(now client.GetResult) error {
			refused := verb.NotWritten(l.key, now, "while it was compared")
			refused.Hint = suggest.Say("the same command again: it compares with the new value")
			return refused
		},
	}
	return w.Set(ctx, l.value, client.SetOptions{Persist: l.persist})
}

// The actions of a plan.
const (
	create    = "create"
	replace   = "replace"
	unchanged = "unchanged"
)

// plan returns what a load would do to the key. before holds the current value of the key. With --persist, the
// same value is written again, because the store does not say whether a key persists.
func (l *loader) plan(before client.GetResult, maxPacket int) format.DatasetPlan {
	p := format.DatasetPlan{
		Key: l.key, Action: replace, Records: l.survey.Records, Bytes: len(l.value), MaxPacket: maxPacket, More: l.survey.More,
	}
	for _, f := range l.survey.Fields {
		p.Columns = append(p.Columns, format.DatasetField{Name: f.Name, Types: f.TypeNames(), Records: f.Records})
	}
	if !before.Found {
		p.Action = create
		return p
	}
	if string(before.Value) == l.value && !l.persist {
		p.Action = unchanged
	}
	d, err := dataset.NewDiff(before.Value, l.survey.On)
	if err != nil { // the key's value is not a data set
		return p
	}
	written := dataset.Read(strings.NewReader(l.value), dataset.Options{Stored: true})
	counts, err := compare(d, l.survey.On, written, func(dataset.Change) error { return nil })
	if err == nil { // always: l.value is valid
		p.Counts = &counts
	}
	return p
}
