package datasetcmd

import (
	"bufio"
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

func newShow(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:         "show KEY",
		Short:       "Print the records of a data set",
		Annotations: map[string]string{app.Forms: csvForm + " jsonl"},
		Long: `Print the records of a data set: on a terminal as a table, which leaves out the last columns
if the terminal is too narrow; elsewhere as JSON Lines.

Besides the forms of all commands, -o takes csv and jsonl; -o wide shows all columns. In
CSV, a field that is missing or null is an empty cell, and an object or an array is
written as JSON. -o json prints an object for each record, with its line number.`,
		Example:           "  sscli dataset show device-metadata\n  sscli dataset show device-metadata -o csv > devices.csv",
		Args:              usage.ExactArgs("KEY"),
		ValidArgsFunction: complete.Keys(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, found, err := read(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			if !found {
				return fault.ErrNo
			}
			return notDataset(args[0], show(a, args[0], value))
		},
	}
}

// csvForm is a form of output; in the other one, jsonl, records are printed as in the raw form.
const csvForm = "csv"

func show(a *app.App, key string, value []byte) error {
	rows := func() iter.Seq2[dataset.Record, error] { return dataset.Read(bytes.NewReader(value), stored(key)) }
	human := a.Output == "human"
	var columns []string
	if human || a.Form == csvForm {
		var err error
		if columns, err = dataset.Columns(rows()); err != nil {
			return err
		}
	}
	if a.Form == csvForm {
		return writeCSV(a, columns, rows())
	}
	t := table{columns: columns}
	if human {
		if err := t.measure(a, rows(), a.Settings.Output == "wide"); err != nil {
			return err
		}
	}
	for r, err := range rows() {
		if err != nil {
			return err
		}
		result := format.DatasetRecord{Key: key, Line: r.Line, Record: r.JSON}
		if human {
			if err := t.fill(&result); err != nil {
				return err
			}
		}
		if err := a.Queue(result); err != nil {
			return err
		}
	}
	if err := a.Flush(); err != nil {
		return err
	}
	if hidden := columns[len(t.columns):]; len(hidden) > 0 {
		a.Inform(fmt.Sprintf("%s not shown: %s; -o wide shows all", format.Count(len(hidden), "field"), strings.Join(hidden, ", ")))
	}
	return nil
}

func writeCSV(a *app.App, columns []string, rows iter.Seq2[dataset.Record, error]) error {
	out := bufio.NewWriter(a.Stdout)
	err := dataset.WriteCSV(out, columns, rows)
	if err == nil {
		err = out.Flush()
	}
	if err != nil && !fault.IsA[*fault.UsageError](err) {
		return &fault.OutputError{Err: err}
	}
	return err
}

// A table is the column layout of printed records.
type table struct {
	columns []string // the columns to print
	maxCell int      // the maximum width of a cell, in terminal columns; 0 = no limit
}

// maxCell is the maximum width of a cell on a terminal, in terminal columns, except with -o wide.
const maxCell = 32

// measure removes the columns that do not fit on the terminal, and sets the widths of the others. If
// all is true, measure keeps all columns and does not limit the cells.
func (t *table) measure(a *app.App, rows iter.Seq2[dataset.Record, error], all bool) error {
	terminal := a.Width()
	if terminal > 0 && !all {
		t.maxCell = maxCell
	}
	widest := format.DatasetRecord{Titles: t.columns, Cells: make([]format.DatasetCell, len(t.columns))}
	for r, err := range rows {
		if err != nil {
			return err
		}
		row := format.DatasetRecord{Record: r.JSON}
		if err := t.fill(&row); err != nil {
			return err
		}
		for i, c := range row.Cells {
			if width(c.Text) > width(widest.Cells[i].Text) {
				widest.Cells[i] = c
			}
		}
	}
	if terminal > 0 && !all {
		used := 0
		for i, c := range widest.Cells {
			const gap = 2
			used += max(width(c.Text), width(t.columns[i])) + gap
			if used-gap > terminal && i > 0 {
				t.columns = t.columns[:i]
				break
			}
		}
	}
	widest.Titles, widest.Cells = t.columns, widest.Cells[:len(t.columns)]
	a.Out.Measure(widest)
	return nil
}

func width(text string) int { return format.Columns(format.Escape(text)) }

func (t *table) fill(r *format.DatasetRecord) error {
	r.Titles, r.Cells = t.columns, make([]format.DatasetCell, len(t.columns))
	for f, err := range dataset.Fields(r.Record) {
		if err != nil {
			return err
		}
		i := slices.Index(t.columns, f.Name)
		if i < 0 {
			continue
		}
		text := f.Cell()
		if t.maxCell > 0 && width(text) > t.maxCell {
			text = format.Cut(text, t.maxCell)
		}
		r.Cells[i] = format.DatasetCell{Text: text, Number: f.IsNumber()}
	}
	return nil
}
