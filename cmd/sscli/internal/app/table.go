package app

import (
	"cmp"

	"github.com/sscli/sscli/format"
)

// A Table prints rows. In the human form, the first rows set the widths of the columns, so they are held
// back.
type Table struct {
	app     *App
	first   int          // how many rows set the widths, unless Flush is called earlier
	rows    []format.Row // rows that are held back
	aligned bool         // no rows are held back
}

// NewTable returns a table. The first rows set the widths of its columns.
func (a *App) NewTable(first int) *Table {
	return &Table{app: a, first: first, aligned: a.Output != "human"}
}

// Add queues a row or holds it back.
func (t *Table) Add(row format.Row) error {
	if t.aligned {
		return t.app.Queue(row)
	}
	if t.rows = append(t.rows, row); len(t.rows) == t.first {
		return t.align()
	}
	return nil
}

// align queues the rows that are held back, if there are any.
func (t *Table) align() error {
	if len(t.rows) == 0 {
		return nil
	}
	t.app.Out.Measure(t.rows...)
	t.aligned = true
	for _, row := range t.rows {
		if err := t.app.Queue(row); err != nil {
			return err
		}
	}
	t.rows = nil
	return nil
}

// Flush prints all rows.
func (t *Table) Flush() error { return cmp.Or(t.align(), t.app.Flush()) }
