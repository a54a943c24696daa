package dataset

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// A ColumnType is the JSON type to which the cells of a CSV column are converted.
type ColumnType string

// The types. For an empty cell, the record has no field, unless the type is String.
const (
	Recognised ColumnType = ""        // a number or boolean if the cell is one in JSON; else a string, such as 007
	String     ColumnType = "string"  // any cell; an empty cell is an empty string
	Number     ColumnType = "number"  // a JSON number
	Boolean    ColumnType = "boolean" // true or false
	Any        ColumnType = "json"    // any JSON value, such as an object
)

// Types maps names of columns to their types. The name * stands for all other columns.
type Types map[string]ColumnType

// ParseTypes parses types such as serial=string,floor=number,*=string.
func ParseTypes(text string) (Types, error) {
	types := Types{}
	if text == "" {
		return types, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		i := strings.LastIndexByte(part, '=')
		if i < 1 {
			return nil, fmt.Errorf("%.64q: expected COLUMN=TYPE", part)
		}
		name, t := part[:i], ColumnType(part[i+1:])
		if !slices.Contains([]ColumnType{String, Number, Boolean, Any}, t) {
			return nil, fmt.Errorf("%.64q: expected string, number, boolean or json after the =", part)
		}
		if _, twice := types[name]; twice {
			return nil, fmt.Errorf("column %.64q has two types", name)
		}
		types[name] = t
	}
	return types, nil
}

func (t Types) of(column string) ColumnType {
	if typ, ok := t[column]; ok {
		return typ
	}
	return t["*"]
}

// A csvReader reads CSV with a header.
type csvReader struct {
	*csv.Reader
	name    string
	columns []string
	types   []ColumnType
	names   [][]byte // the names of the fields as JSON, each with a colon
	fields  []Field  // of the row; nil = a column may have any JSON
}

func readCSV(in *bufio.Reader, o Options, yield func(Record, error) bool) {
	c := &csvReader{Reader: csv.NewReader(&lineEnds{source: in}), name: o.Name}
	c.ReuseRecord = true
	switch {
	case o.Comma != 0:
		c.Comma = o.Comma
	case strings.EqualFold(filepath.Ext(o.Name), ".tsv"):
		c.Comma = '\t'
	}
	first, _ := in.Peek(1)
	if err := c.header(o, string(first) == `"`); err != nil {
		yield(Record{}, err)
		return
	}
	var object []byte
	for {
		row, err := c.Read()
		if err == io.EOF {
			return
		}
		if err != nil {
			yield(Record{}, c.reworded(err))
			return
		}
		if c.isBlank(row) {
			if o.Skipped != nil {
				*o.Skipped++
			}
			continue
		}
		object, c.fields = append(object[:0], '{'), c.fields[:0]
		for i, cell := range row {
			if object, err = c.appendField(object, i, cell); err != nil {
				yield(Record{}, c.errorAt(i, err))
				return
			}
		}
		line, _ := c.FieldPos(0)
		if !yield(Record{Line: line, JSON: append(object, '}'), fields: c.fields}, nil) {
			return
		}
	}
}

// isBlank reports whether a row has nothing but separators. In the last rows of a sheet, spreadsheets write
// such rows.
func (c *csvReader) isBlank(row []string) bool {
	_, column := c.FieldPos(len(row) - 1) // an empty cell in quotes takes room
	return len(row) > 1 && column == 1+(len(row)-1)*utf8.RuneLen(c.Comma) && !slices.ContainsFunc(row, func(cell string) bool { return cell != "" })
}

// separator reads the line sep=; which spreadsheets write before the header and read themselves, if row
// is such a line. ok is false if it is not.
func (c *csvReader) separator(row []string, given bool) (ok bool) {
	text, ok := strings.CutPrefix(strings.Join(row, string(c.Comma)), "sep=")
	r, size := utf8.DecodeRuneInString(text)
	if !ok || size == 0 || size != len(text) || r == utf8.RuneError || r == '"' {
		return false
	}
	if c.FieldsPerRecord = 0; !given {
		c.Comma = r
	}
	return true
}

// header reads and checks the names of the columns, and determines the type of each column. quoted is whether the
// source begins with a quote.
func (c *csvReader) header(o Options, quoted bool) error {
	types := o.Types
	row, err := c.Read()
	if err == nil && c.separator(row, o.Comma != 0) {
		row, err = c.Read()
	}
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return c.reworded(err)
	}
	for i, name := range row {
		first := slices.Index(c.columns, name)
		switch {
		case strings.TrimSpace(name) == "":
			return c.errorAt(i, fmt.Errorf("column %d of the header has no name: expected a header line with the names of the fields", i+1))
		case first >= 0:
			return c.errorAt(i, fmt.Errorf("columns %d and %d of the header have the same name %.64q", first+1, i+1, name))
		case !utf8.ValidString(name):
			return c.errorAt(i, cellNotUTF8(name))
		}
		c.columns = append(c.columns, strings.Clone(name))
		c.names = append(c.names, append(quote(name), ':'))
		c.types = append(c.types, types.of(name))
	}
	if !slices.Contains(c.types, Any) {
		c.fields = make([]Field, 0, len(row))
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if name != "*" && !slices.Contains(c.columns, name) {
			return c.errorAt(0, fmt.Errorf("no column %.64q, which has a type: the columns are %.200s", name, strings.Join(c.columns, ", ")))
		}
	}
	if other := c.otherComma(); other != "" && !quoted && o.Comma == 0 {
		wrong := c.errorAt(0, fmt.Errorf("one column %.64q: expected cells between commas", c.columns[0]))
		wrong.hint, wrong.Separator = suggest.Run("--separator", other), other
		return wrong
	}
	return nil
}

// otherComma returns the value of --separator to suggest. It returns "" unless the header is a single
// column whose name contains a semicolon or a tab.
func (c *csvReader) otherComma() string {
	if len(c.columns) == 1 && c.Comma == ',' {
		switch name := c.columns[0]; {
		case strings.Contains(name, ";"):
			return ";"
		case strings.Contains(name, "\t"):
			return "tab"
		}
	}
	return ""
}

// appendField appends a field to an object. It omits an empty cell, unless the type of the column is
// String.
func (c *csvReader) appendField(object []byte, column int, cell string) ([]byte, error) {
	t := c.types[column]
	if cell == "" && t != String {
		return object, nil
	}
	value, err := t.value(cell)
	if err != nil {
		return nil, fmt.Errorf("column %.64q: %w", c.columns[column], err)
	}
	if object[len(object)-1] != '{' {
		object = append(object, ',')
	}
	if c.fields != nil {
		c.fields = append(c.fields, Field{c.columns[column], value})
	}
	object = append(object, c.names[column]...)
	return append(object, value...), nil
}

func (t ColumnType) value(cell string) ([]byte, error) {
	if !utf8.ValidString(cell) {
		return nil, cellNotUTF8(cell)
	}
	switch {
	case t == String:
		return quote(cell), nil
	case t != Number && (cell == "true" || cell == "false"), t != Boolean && isNumber(cell):
		return []byte(cell), nil
	case t == Boolean && (strings.EqualFold(cell, "true") || strings.EqualFold(cell, "false")): // as spreadsheets write them
		return []byte(strings.ToLower(cell)), nil
	case t == Recognised:
		return quote(cell), nil
	case t == Any:
		var out bytes.Buffer
		if err := json.Compact(&out, []byte(cell)); err != nil {
			return nil, fmt.Errorf("%.64q is not JSON: %w", cell, err)
		}
		return out.Bytes(), nil
	}
	return nil, fmt.Errorf("%.64q is not a %s", cell, t)
}

func cellNotUTF8(cell string) error {
	i, _ := invalidUTF8([]byte(cell))
	return notUTF8(cell[i])
}

// isNumber reports whether a cell, which must not be empty, is a JSON number.
func isNumber(cell string) bool {
	return (cell[0] == '-' || cell[0] >= '0' && cell[0] <= '9') && json.Valid([]byte(cell)) && strings.TrimSpace(cell) == cell
}

func quote(text string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // encoding a string cannot fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func (c *csvReader) errorAt(column int, err error) *Error {
	line, col := c.FieldPos(column)
	return &Error{Name: c.name, Line: line, Column: col, Err: err}
}

// reworded returns an error of package csv in our words, with its position.
func (c *csvReader) reworded(err error) error {
	syntax, ok := errors.AsType[*csv.ParseError](err)
	if !ok {
		return err
	}
	wrong := &Error{Name: c.name, Line: syntax.Line, Column: max(1, syntax.Column), Err: syntax.Err}
	switch syntax.Err {
	case csv.ErrFieldCount:
		wrong.Err = fmt.Errorf("another number of cells than the header, which has %d", len(c.columns))
	case csv.ErrBareQuote:
		wrong.Err = errors.New(`a " inside of a cell without quotes: expected the cell in quotes, with "" for each "`)
	case csv.ErrQuote:
		wrong.Err = errors.New(`a " ends a cell too early, or never: expected "" for each " inside of a cell in quotes`)
	}
	return wrong
}

// WriteCSV writes records as CSV. columns is the header, in the order of the cells. Fields without a
// column are omitted; [Columns] returns the columns for all fields. A missing or null field is an empty
// cell, and an object or array is written as JSON.
func WriteCSV(w io.Writer, columns []string, records iter.Seq2[Record, error]) error {
	out := csv.NewWriter(w)
	if len(columns) == 1 && strings.ContainsAny(columns[0], ";\t") { // without quotes, it would be taken for several columns
		if _, err := io.WriteString(w, `"`+strings.ReplaceAll(columns[0], `"`, `""`)+"\"\n"); err != nil {
			return err
		}
	} else if len(columns) > 0 {
		_ = out.Write(columns) // out.Error returns the error
	}
	row, index := make([]string, len(columns)), make(map[string]int, len(columns))
	for i, name := range columns {
		index[name] = i
	}
	for r, err := range records {
		if err != nil {
			return err
		}
		clear(row)
		for f, err := range Fields(r.JSON) {
			if err != nil {
				return err
			}
			if i, ok := index[f.Name]; ok {
				row[i] = f.Cell()
			}
		}
		if len(row) > 0 && !slices.ContainsFunc(row, func(cell string) bool { return cell != "" }) {
			out.Flush() // readers skip the row that package csv would write
			if _, err := io.WriteString(w, `""`+strings.Repeat(",", len(row)-1)+"\n"); err != nil {
				return err
			}
			continue
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// Columns returns the names of the fields of all records, in an order that agrees with the order in each
// record if there is one, as there is for records from CSV. Otherwise, and if there are more than 1,000,
// names that appear first come first.
func Columns(records iter.Seq2[Record, error]) (columns []string, err error) {
	var names []string
	before := make(map[string]map[string]bool) // for each name, the names right before it in a record
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		previous := ""
		for f, err := range Fields(r.JSON) {
			if err != nil {
				return nil, err
			}
			if before[f.Name] == nil {
				before[f.Name] = make(map[string]bool)
				names = append(names, f.Name)
			}
			if previous != "" {
				before[f.Name][previous] = true
			}
			previous = f.Name
		}
	}
	const maxSorted = 1000
	if len(names) > maxSorted {
		return names, nil
	}
	for len(names) > 0 {
		next := max(0, slices.IndexFunc(names, func(name string) bool { return len(before[name]) == 0 })) // the first, if the records disagree
		columns = append(columns, names[next])
		for _, others := range before {
			delete(others, names[next])
		}
		names = slices.Delete(names, next, next+1)
	}
	return columns, nil
}

// A lineEnds reads CSV for package csv, which takes a CR alone for text, and replaces a CRLF in a quoted
// cell with LF. Outside of quotes, lineEnds ends a line at each CR and CRLF, as spreadsheets do. In a quoted
// cell it puts a CR before each CRLF, so that package csv leaves a CRLF.
type lineEnds struct {
	source *bufio.Reader
	quoted bool // in a quoted cell: after an odd number of quotation marks
	cr     bool // the previous byte was a CR, which is not in text yet
	text   []byte
	buffer []byte
}

// Read implements [io.Reader].
func (l *lineEnds) Read(p []byte) (int, error) {
	for len(l.text) == 0 {
		if err := l.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.text)
	l.text = l.text[n:]
	return n, nil
}

// fill sets text to what the next bytes of source become. text is valid until the next fill.
func (l *lineEnds) fill() error {
	_, err := l.source.Peek(1)
	chunk, _ := l.source.Peek(l.source.Buffered())
	switch {
	case len(chunk) == 0 && l.cr: // the last byte
		l.text = l.end(l.buffer[:0])
		return nil
	case len(chunk) == 0:
		return err
	case !l.cr && bytes.IndexByte(chunk, '\r') < 0:
		l.quoted = l.quoted != (bytes.Count(chunk, []byte(`"`))%2 == 1)
		l.text = chunk
	default:
		l.buffer = l.buffer[:0]
		for _, c := range chunk {
			if l.cr && c == '\n' && l.quoted {
				l.buffer = append(l.buffer, "\r\r"...)
			} else if l.cr && c != '\n' {
				l.buffer = l.end(l.buffer)
			}
			if l.cr = c == '\r'; !l.cr {
				l.buffer = append(l.buffer, c)
			}
			l.quoted = l.quoted != (c == '"')
		}
		l.text = l.buffer
	}
	_, _ = l.source.Discard(len(chunk)) // cannot fail: chunk is buffered
	return nil
}

// end appends what a CR without LF becomes.
func (l *lineEnds) end(text []byte) []byte {
	l.cr = false
	if l.quoted {
		return append(text, '\r')
	}
	return append(text, '\n')
}
