package datasetcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

func newCheck(a *app.App) *cobra.Command {
	var data config.Text
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check data flows against their data sets",
		Long: `Check the definitions of data flows and of data flow graphs, YAML or JSON, against the
data sets that they use. Does each key exist and hold a data set? Do its records have the
fields that inputs and $context(ALIAS).FIELD name? Is each alias defined? Are the entries
of datasets complete?

Each finding is a line: FILE:LINE: the problem; how to fix it. The exit code is 1 if there
are any. Of expressions, only $1 == $2 is checked; stderr names the others, and records
that no message can find.

The data sets come from the store. With --data, they come from the files of a directory,
without a broker: KEY itself holds what the store would hold, and KEY with .jsonl,
.ndjson, .json, .csv or .tsv is read as by sscli dataset load. Two of them are an error.`,
		Example: "  sscli dataset check flow.yaml\n  sscli dataset check flows/*.yaml --data reference-data",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.Usagef("missing FILE")
			}
			return nil
		},
		ValidArgsFunction: complete.Files,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := checker{app: a, names: args}
			if err := c.readFiles(cmd.Context()); err != nil {
				return err
			}
			if data != "" {
				return c.run(cmd.Context(), c.fromDirectory(string(data)))
			}
			if len(c.uses) == 0 {
				return c.run(cmd.Context(), nil)
			}
			return a.WithSession(cmd.Context(), func(s *client.Session, _ client.Options) error {
				return c.run(cmd.Context(), c.fromStore(s))
			})
		},
	}
	cmd.Flags().Var(&data, "data", "take the data sets from the files in `DIR`, not from the store")
	_ = cmd.MarkFlagDirname("data") // the flag exists
	return cmd
}

// A checker checks definitions against data sets.
type checker struct {
	app   *app.App
	names []string // the files to check

	uses     []use
	findings []finding
}

// A use is a place in one of the files where a data set is named.
type use struct {
	file int // index in checker.names
	*dataset.Reference
}

// A finding is a problem in one of the files.
type finding struct {
	file int // index in checker.names
	dataset.Finding
}

func (c *checker) find(file, line int, message, hint string) {
	c.findings = append(c.findings, finding{file, dataset.Finding{Line: line, Message: message, Hint: hint}})
}

// note prints a message on standard error. Unlike a finding, it does not affect the exit code.
func (c *checker) note(file, line int, message string) {
	c.app.Inform(format.Location(c.names[file], line, 0) + ": " + message)
}

func (c *checker) readFiles(ctx context.Context) error {
	c.app.Signals.Arm()
	for i, name := range c.names {
		written, err := terminal.ReadFile(ctx, name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return &fault.UsageError{Err: err}
		}
		text, err := files.DecodeText([]byte(written))
		if err != nil {
			return fault.Usagef("%s: %w", format.Location(name, 0, 0), err)
		}
		f, err := dataset.ReadDefinition(ctx, text)
		if err != nil {
			return err
		}
		for _, found := range f.Findings {
			c.findings = append(c.findings, finding{i, found})
		}
		for _, n := range f.Notes {
			c.note(i, n.Line, n.Message)
		}
		for _, d := range f.Datasets {
			c.uses = append(c.uses, use{i, d})
		}
	}
	return nil
}

// A source returns the records of a key. rows is nil if there is no data set for the key. hint says
// what to do if there are no records.
type source func(ctx context.Context, key string) (rows iter.Seq2[dataset.Record, error], hint string, err error)

// run checks the data sets, and prints the findings.
func (c *checker) run(ctx context.Context, from source) error {
	keys := make(map[string][]use)
	for _, u := range c.uses {
		keys[u.Key] = append(keys[u.Key], u)
	}
	checked := make(map[string]bool)
	for _, u := range c.uses {
		if checked[u.Key] {
			continue
		}
		checked[u.Key] = true
		if err := c.checkKey(ctx, u.Key, keys[u.Key], from); err != nil {
			return err
		}
	}
	slices.SortStableFunc(c.findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line))
	})
	for _, f := range c.findings {
		result := format.Finding{By: "dataset", File: c.names[f.file], Line: f.Line, Message: f.Message, Hint: f.Hint}
		if err := c.app.Queue(result); err != nil {
			return err
		}
	}
	if err := c.app.Flush(); err != nil {
		return err
	}
	c.app.Inform(fmt.Sprintf("%s in %s checked: %s", format.Count(len(checked), "data set"), format.Count(len(c.names), "file"), format.Count(len(c.findings), "finding")))
	return fault.NoIf(len(c.findings) > 0)
}

func (c *checker) checkKey(ctx context.Context, key string, uses []use, from source) error {
	rows, hint, err := from(ctx, key)
	if err != nil {
		return err
	}
	findForAll := func(message, hint string) {
		for _, u := range uses {
			c.find(u.file, u.Line, message, hint)
		}
	}
	if rows == nil {
		findForAll(fmt.Sprintf("there is no data set %s: each rule that needs it is skipped", format.Quote(key)), hint)
		return nil
	}
	wanted := make([]wantedField, 0, len(uses))
	for _, u := range uses {
		for _, f := range u.Fields {
			wanted = append(wanted, wantedField{use: u, UsedField: f})
		}
	}
	surveys := []*dataset.Survey{{}} // the first for the fields of the records, then one for each use
	for _, u := range uses {
		surveys = append(surveys, &dataset.Survey{On: u.On})
	}
	for r, err := range rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := 0; err == nil && i < len(surveys); i++ {
			err = surveys[i].Add(r)
		}
		if usage, ok := err.(*fault.UsageError); ok {
			findForAll(fmt.Sprintf("the value of %s is not a data set: %v", format.Quote(key), usage), "sscli dataset load "+format.ShWord(key)+" FILE writes one")
			return nil
		}
		if err != nil {
			return err
		}
		for i := range wanted {
			wanted[i].add(r)
		}
	}
	if surveys[0].Records == 0 {
		findForAll(fmt.Sprintf("the data set %s has no records: each rule that needs it is skipped", format.Quote(key)), hint)
		return nil
	}
	for _, w := range wanted {
		c.report(key, w, surveys[0])
	}
	for i, s := range surveys[1:] {
		for _, text := range s.Warnings() {
			c.note(uses[i].file, uses[i].Line, format.BriefWord(key)+": "+text)
		}
	}
	return nil
}

type wantedField struct {
	use
	dataset.UsedField
	records int              // number of records with the field
	lacking dataset.Examples // records without the field
}

func (w *wantedField) add(r dataset.Record) {
	value := r.JSON
	if len(w.Path) > 0 {
		value = w.Path.In(r.JSON)
	}
	if value == nil || w.Object && value[0] != '{' {
		w.lacking.Add(r.Line)
		return
	}
	w.records++
}

// report adds a finding if no record has the field, and prints a note if only some have it.
func (c *checker) report(key string, w wantedField, all *dataset.Survey) {
	line, path := w.UsedField.Line, format.Quote(w.Path.String())
	switch {
	case w.lacking.Count == 0:
	case w.records > 0:
		c.note(w.file, line, fmt.Sprintf("%d of %d records of %s have no field %s (%s)", w.lacking.Count, all.Records, format.BriefWord(key), path, w.lacking))
	case w.Object:
		c.find(w.file, line, fmt.Sprintf("no record of %s has an object %s", format.Quote(key), path), "name a field that is an object, or * alone for the whole record")
	default:
		var names []string
		for _, f := range all.Fields {
			names = append(names, f.Name)
		}
		if len(w.Path) > 1 && slices.Contains(names, w.Path[0]) {
			names = nil // names has only top-level fields, and w.Path[0] is spelled correctly
		}
		hint := "add the field to the records"
		if near := suggest.Near(w.Path[0], names); len(near) > 0 {
			hint = "the records have " + dataset.Path{near[0]}.String()
		} else if len(names) > 0 && !all.More {
			hint = "the records have " + format.Cut(strings.Join(names, ", "), 200)
		}
		c.find(w.file, line, fmt.Sprintf("no record of %s has the field %s", format.Quote(key), path), hint)
	}
}

func (c *checker) fromStore(s *client.Session) source {
	return func(ctx context.Context, key string) (iter.Seq2[dataset.Record, error], string, error) {
		hint := suggest.Try("`sscli dataset load KEY FILE`").Fill(suggest.Key, key).String()
		if err := client.Get(key).Check(); err != nil {
			return nil, err.Error(), nil
		}
		r, err := verb.ReadKey(ctx, c.app, s, key)
		if err != nil || !r.Found {
			return nil, hint, err
		}
		return dataset.Read(bytes.NewReader(r.Value), dataset.Options{Stored: true}), hint, nil
	}
}

func (c *checker) fromDirectory(dir string) source {
	return func(_ context.Context, key string) (iter.Seq2[dataset.Record, error], string, error) {
		rows, name, err := dataset.ReadKey(dir, key)
		if missing, ok := errors.AsType[*dataset.NoFileError](err); ok {
			return nil, missing.Error(), nil
		}
		return rows, "add records to " + name, err
	}
}
