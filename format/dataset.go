package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// DatasetRecord is a record that `dataset show` prints.
type DatasetRecord struct {
	Key    string          `json:"key"`
	Line   int             `json:"line"`
	Record json.RawMessage `json:"record"` // without spaces
	Titles []string        // titles of the columns in the human form
	Cells  []DatasetCell
}

// DatasetCell is one field of a DatasetRecord in the human form.
type DatasetCell struct {
	Text   string
	Number bool
}

func (r DatasetRecord) fields(o *objectWriter) { o.result("dataset_record", r) }

func (r DatasetRecord) human(w *writer) { w.row(r) }

func (r DatasetRecord) titles(*style) (titles []string) {
	for _, title := range r.Titles {
		titles = append(titles, Escape(title))
	}
	return titles
}

func (r DatasetRecord) cells(*style) (cells []cell) {
	for _, c := range r.Cells {
		cells = append(cells, cell{text: Escape(c.Text), right: c.Number, whole: true})
	}
	return cells
}

// raw writes the record as a line of JSON Lines.
func (r DatasetRecord) raw(w *writer) { w.out = append(append(w.out, r.Record...), '\n') }

// DatasetMatch is the record that `dataset match` found for a message.
type DatasetMatch struct {
	Key     string
	Message int    // line number of the message in the file of --message; 0 = no file
	Line    int    // line number of the record; 0 if none matches
	Record  []byte // JSON without spaces
}

func (m DatasetMatch) fields(o *objectWriter) {
	o.add("op", "dataset_match")
	o.add("key", m.Key)
	o.add("message", when(m.Message > 0, m.Message))
	o.add("found", m.Line > 0)
	o.add("line", when(m.Line > 0, m.Line))
	o.add("record", when(m.Line > 0, jsonText(m.Record)))
}

func (m DatasetMatch) human(w *writer) {
	if m.Message > 0 {
		w.printf("message %d: ", m.Message)
	}
	if m.Line == 0 {
		w.print("none: the rule is skipped\n")
		return
	}
	w.printf("line %d  %s\n", m.Line, appendJSONText(nil, string(m.Record)))
}

// raw writes the record as a line of JSON Lines. If no record matches, it writes nothing or, if
// m.Message is set, an empty line.
func (m DatasetMatch) raw(w *writer) {
	if m.Line > 0 || m.Message > 0 {
		w.out = append(append(w.out, m.Record...), '\n')
	}
}

// DatasetChange is a record that differs between two versions of a data set.
type DatasetChange struct {
	Change  string          `json:"change"` // added, removed or changed
	Key     string          `json:"key"`
	OldLine int             `json:"old_line,omitzero"` // 0 if the record was added
	Line    int             `json:"line,omitzero"`     // 0 if the record was removed
	Old     json.RawMessage `json:"old,omitzero"`      // without spaces; nil if the record was added
	New     json.RawMessage `json:"new,omitzero"`      // nil if the record was removed
	Fields  []FieldChange   `json:"fields,omitempty"`
}

func (c DatasetChange) fields(o *objectWriter) { o.result("dataset_change", c) }

// human writes + for an added record, - for a removed record, and ~ for a changed record, followed
// by a line for each changed field.
func (c DatasetChange) human(w *writer) {
	switch {
	case c.Old == nil:
		w.printf("+ line %d  %s\n", c.Line, appendJSONText(nil, string(c.New)))
	case c.New == nil:
		w.printf("- line %d  %s\n", c.OldLine, appendJSONText(nil, string(c.Old)))
	default:
		w.printf("~ line %d → %d\n", c.OldLine, c.Line)
		for _, f := range c.Fields {
			w.print("    ", f.path(), "  ", f.arrow(), "\n")
		}
		if len(c.Fields) == 0 {
			w.print("    the order or the spelling of the fields\n")
		}
	}
}

// raw writes the change, both line numbers, and both records. A missing line number is a minus, and
// a missing record is empty.
func (c DatasetChange) raw(w *writer) {
	w.record(c.Change, when(c.OldLine > 0, c.OldLine), when(c.Line > 0, c.Line), []byte(c.Old), []byte(c.New))
}

// DatasetCounts counts the equal and the different records of two versions of a data set.
type DatasetCounts struct {
	On        string `json:"on,omitempty"` // the match field
	Equal     int    `json:"equal"`
	Added     int    `json:"added"`
	Removed   int    `json:"removed"`
	Changed   int    `json:"changed"`
	Reordered bool   `json:"reordered"` // the records that both versions have are in a different order
}

// String returns the counts as text.
func (c DatasetCounts) String() string {
	by := ""
	if c.On != "" {
		by = " by " + Word(c.On)
	}
	text := fmt.Sprintf("%d added, %d removed, %d changed%s, %d equal", c.Added, c.Removed, c.Changed, by, c.Equal)
	if c.Reordered {
		text += "; the order differs"
	}
	return text
}

// DatasetSummary counts the changes that `dataset diff` found, for standard error.
type DatasetSummary struct {
	Key string `json:"key"`
	DatasetCounts
}

func (DatasetSummary) diagnostic() {}

func (s DatasetSummary) fields(o *objectWriter) { o.result("dataset_summary", s) }

func (s DatasetSummary) human(w *writer) { w.program("%s\n", s.DatasetCounts) }

// DatasetPlan is what `dataset load` would write, as its --dry-run prints it.
type DatasetPlan struct {
	Key       string         `json:"key"`
	Action    string         `json:"action"` // create, replace or unchanged
	Records   int            `json:"records"`
	Bytes     int            `json:"bytes"`      // size of the value
	MaxPacket int            `json:"max_packet"` // size of the largest packet that the broker accepts, in bytes
	Columns   []DatasetField `json:"columns"`
	More      bool           `json:"more_columns,omitzero"` // Columns omits some fields
	Counts    *DatasetCounts // nil = there is no data set to compare with
}

// DatasetField gives the types of a field and the number of records that have the field.
type DatasetField struct {
	Name    string `json:"name"`
	Types   string `json:"types"`
	Records int    `json:"records"`
}

func (p DatasetPlan) fields(o *objectWriter) {
	o.result("dataset_plan", p)
	if p.Counts != nil {
		o.structure(*p.Counts)
	}
}

func (p DatasetPlan) human(w *writer) { w.print(strings.Join(p.lines(), "\n"), "\n") }

func (p DatasetPlan) lines() []string {
	columns := make([]string, len(p.Columns))
	for i, c := range p.Columns {
		columns[i] = Word(c.Name) + " " + c.Types
		if c.Records < p.Records {
			columns[i] += fmt.Sprintf(" (%d of %d)", c.Records, p.Records)
		}
	}
	if p.More {
		columns = append(columns, "…")
	}
	difference := BriefWord(p.Key)
	switch {
	case p.Action == "create":
		difference += " does not exist yet"
	case p.Counts != nil:
		difference += ": " + p.Counts.String()
	default:
		difference += " is not a data set, and is replaced"
	}
	return []string{
		fmt.Sprintf("%s, %s; the broker accepts packets of %s", Count(p.Records, "record"), Count(p.Bytes, "byte"), Size(int64(p.MaxPacket))),
		"fields: " + cmp.Or(strings.Join(columns, "; "), "none"),
		difference,
	}
}

// raw writes the action, the numbers of records and bytes, and the numbers of added, removed, changed
// and equal records. Each of the last four is a minus if there is no data set to compare with.
func (p DatasetPlan) raw(w *writer) {
	if c := p.Counts; c != nil {
		w.record(p.Action, p.Records, p.Bytes, c.Added, c.Removed, c.Changed, c.Equal)
		return
	}
	w.record(p.Action, p.Records, p.Bytes, nil, nil, nil, nil)
}

// DatasetPlanned is the plan of `dataset load`, for standard error.
type DatasetPlanned struct{ DatasetPlan }

func (DatasetPlanned) diagnostic() {}

func (p DatasetPlanned) human(w *writer) {
	for _, line := range p.lines() {
		w.program("%s\n", line)
	}
}

func (p DatasetPlanned) raw(w *writer) { p.human(w) }
