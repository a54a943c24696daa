package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// A Record is a JSON object.
type Record struct {
	Line int    // line of the source on which the record begins, from 1
	JSON []byte // the object without white space between tokens; valid until the next record is read

	fields []Field // of a row of CSV, which has no field twice; nil = JSON must be parsed
}

// unique is like [UniqueFields].
func (r Record) unique() iter.Seq2[Field, error] {
	if r.fields == nil {
		return UniqueFields(r.JSON)
	}
	return func(yield func(Field, error) bool) {
		for _, f := range r.fields {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// in is like [Path.In].
func (r Record) in(p Path) []byte {
	if r.fields == nil || len(p) != 1 {
		return p.In(r.JSON)
	}
	for _, f := range r.fields {
		if f.Name == p[0] {
			return f.JSON
		}
	}
	return nil
}

// Options configure [Read]. The zero value reads any format.
type Options struct {
	Name    string // name of the source, such as sites.csv, for errors and to detect the format; may be empty
	Format  Format
	Types   Types // the types of CSV columns; JSON must have none
	Comma   rune  // separates the cells of CSV; 0 = a tab if Name ends in .tsv, else a comma; JSON must have 0
	Skipped *int  // counts rows of CSV that have nothing but separators, which are skipped; may be nil
	Stored  bool  // the source is the value of a key: only JSON Lines are accepted, without blank lines
}

// A Format is the format of a source.
type Format string

// The formats. Auto chooses by the extension of the name. If the extension is unknown, Auto chooses
// JSON for text that is empty or begins with { or [, else CSV.
const (
	Auto Format = ""
	JSON Format = "json" // JSON Lines, objects with any white space between them, or an array of objects
	CSV  Format = "csv"
)

// An Error is an error in the content of a source. [Read] wraps it in a *fault.UsageError.
type Error struct {
	Name         string // name of the source; may be empty
	Line, Column int    // from 1; Column counts bytes
	Err          error
	Separator    string       // the separator that the source seems to have; empty = the error is not about it
	hint         suggest.Hint // what to try next; may be nil
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("line %d, column %d: %v", e.Line, e.Column, e.Err)
	}
	return fmt.Sprintf("%s: %v", format.Location(e.Name, e.Line, e.Column), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Read returns an iterator over the records of a source. It ends with the first error, which wraps an
// *[Error] about the content or is the error of the reader. A *[files.SizeError] of the reader is a usage
// error.
func Read(source io.Reader, o Options) iter.Seq2[Record, error] {
	return func(give func(Record, error) bool) {
		yield := func(r Record, err error) bool {
			if bad, ok := errors.AsType[*files.TextError](err); ok {
				err = &Error{Name: o.Name, Line: 1, Column: 1, Err: bad}
			}
			if wrong, ok := errors.AsType[*Error](err); ok {
				if errors.Is(err, errNotUTF8) && !o.Stored {
					name := format.ShWord(cmp.Or(o.Name, "FILE"))
					wrong.hint = append(suggest.Say("iconv -f WINDOWS-1252 -t UTF-8 "+name+" > NEW"), suggest.Say("in PowerShell 7: Get-Content -Encoding 1252 "+name+" | Set-Content NEW")...)
				}
				err = &fault.UsageError{Err: wrong, Hint: wrong.hint}
			} else if fault.IsA[*files.SizeError](err) {
				err = &fault.UsageError{Err: err}
			}
			return give(r, err)
		}
		if o.Stored {
			readLines(bufio.NewReaderSize(source, 1<<16), o.Name, yield)
			return
		}
		in := bufio.NewReaderSize(files.NewTextReader(source), 1<<16)
		start, err := in.Peek(512) // fewer bytes if the source is shorter
		if err != nil && err != io.EOF {
			yield(Record{}, err)
			return
		}
		switch {
		case o.format(start) == CSV:
			readCSV(in, o, yield)
		case len(o.Types) > 0 && len(start) > 0:
			yield(Record{}, o.onlyCSV("types are only for the columns of CSV", suggest.Say("jq -c '.NAME |= tostring' makes the field NAME a string")))
		case o.Comma != 0 && len(start) > 0:
			yield(Record{}, o.onlyCSV("a separator is only for CSV", nil))
		default:
			readJSON(in, o.Name, yield)
		}
	}
}

// onlyCSV returns the error for an option that has no effect on JSON.
func (o Options) onlyCSV(why string, hint suggest.Hint) *Error {
	return &Error{Name: o.Name, Line: 1, Column: 1, Err: errors.New("the records are JSON, and " + why), hint: hint}
}

// bom is the byte order mark in UTF-8.
var bom = []byte("\xef\xbb\xbf")

// format returns the format of a source that begins with start: JSON or CSV.
func (o Options) format(start []byte) Format {
	if o.Format != Auto {
		return o.Format
	}
	switch strings.ToLower(filepath.Ext(o.Name)) {
	case ".csv", ".tsv":
		return CSV
	case ".json", ".jsonl", ".ndjson":
		return JSON
	}
	if start = bytes.TrimLeft(start, " \t\r\n"); len(start) == 0 || start[0] == '{' || start[0] == '[' {
		return JSON
	}
	return CSV
}

// ParseSeparator parses the separator of cells: one character, or the word tab.
func ParseSeparator(text string) (rune, error) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case text == "tab":
		return '\t', nil
	case size == 0 || size != len(text) || r == utf8.RuneError || r == '"' || r == '\n' || r == '\r':
		return 0, fmt.Errorf("%.32q: expected one character, or tab", text)
	}
	return r, nil
}

// SkippedRows returns the text that says how many rows [Options].Skipped counted.
func SkippedRows(n int) string {
	return "skipped " + format.Count(n, "row") + " that had only separators"
}

// NoRecords returns the error for a source without records. Such a data set is only written if the user
// says so, because a file that is not what it seems must not replace records by nothing.
func NoRecords(name string) error {
	return fault.Usagef("%s has no records: expected at least one, with a field", format.Path(name))
}

// checkSize returns the error for the records of a source if they are larger than a value can be: size bytes as
// JSON Lines.
func checkSize(name string, size int) error {
	if size > files.MaxValue {
		return fault.Usagef("%s: its records are %w", format.Path(name), &files.SizeError{Max: files.MaxValue})
	}
	return nil
}

// Copy writes the records of a source as canonical JSON Lines to a writer in memory, and adds them to the survey. A
// record that has a field twice is an error, as is a source of more than [files.MaxValue] bytes. If ctx ends, Copy
// returns its cause.
func Copy(ctx context.Context, to io.Writer, source io.Reader, o Options, survey *Survey) error {
	survey.Source = o.Name
	size := 0
	for r, err := range Read(files.Limit(source, files.MaxValue), o) {
		if err == nil {
			size += len(r.JSON)
			err = cmp.Or(survey.Add(r), context.Cause(ctx), checkSize(o.Name, size))
		}
		if err != nil {
			return err
		}
		size++
		_, _ = to.Write(append(r.JSON, '\n')) // in memory, no write fails
	}
	return nil
}
