package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// readLines reads JSON Lines as strictly as a data flow does: each line is one object.
func readLines(in *bufio.Reader, name string, yield func(Record, error) bool) {
	var line, compact []byte
	for n := 1; ; n++ {
		part, err := in.ReadSlice('\n')
		line = append(line[:0], part...)
		for err == bufio.ErrBufferFull {
			part, err = in.ReadSlice('\n')
			line = append(line, part...)
		}
		if err != nil && err != io.EOF {
			yield(Record{}, err)
			return
		}
		if len(line) == 0 {
			return
		}
		compact, err = ParseLine(compact[:0], line)
		if wrong, ok := errors.AsType[*Error](err); ok {
			wrong.Name, wrong.Line = name, n
		}
		if !yield(Record{Line: n, JSON: compact}, err) || err != nil {
			return
		}
	}
}

// ParseLine parses a line of a stored value. It appends the object in the line to compact, without
// white space between tokens. The error is an *[Error].
func ParseLine(compact, line []byte) ([]byte, error) {
	text := bytes.TrimRight(line, "\r\n")
	start := len(text) - len(bytes.TrimLeft(text, " \t"))
	switch {
	case len(text) == start:
		return nil, errorIn(0, errors.New("the line is blank: expected a record"))
	case bytes.HasPrefix(text, bom):
		return nil, errorIn(0, errors.New("the value begins with a byte order mark: expected a record"))
	}
	if i, ok := invalidUTF8(text); ok {
		return nil, errorIn(i, notUTF8(text[i]))
	}
	compact, err := jsontext.AppendFormat(compact, text, lenient()...)
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return nil, lineError(text, bad)
	}
	if text[start] != '{' {
		return nil, errorIn(start, notObject(text[start]))
	}
	return compact, err
}

// errorIn returns an error at an offset in a line. The line number is 1 until readLines sets it.
func errorIn(offset int, err error) *Error { return &Error{Line: 1, Column: offset + 1, Err: err} }

// lenient returns decoder options that accept repeated names, as most JSON parsers do, and that preserve the spelling
// of strings.
func lenient() []jsontext.Options {
	return []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)}
}

// errComma is the error for a comma between records that are not in an array.
var errComma = errors.New("a comma after a record: expected a newline alone between records, or all of them in [ ]")

// lineError returns the error for a line that is not exactly one JSON value.
func lineError(text []byte, bad *jsontext.SyntacticError) *Error {
	at := int(bad.ByteOffset)
	switch {
	case bad.Err == io.ErrUnexpectedEOF:
		return errorIn(len(text), errors.New("the line ends inside of a JSON value: a record must be on one line"))
	case !strings.HasSuffix(bad.Err.Error(), "after top-level value"):
		return errorIn(at, notJSON(bad.Err))
	case text[at] == ',':
		return errorIn(at, errComma)
	}
	return errorIn(at, errors.New("text after the record: expected one record a line"))
}

func notJSON(err error) error {
	switch text := err.Error(); {
	case text == "invalid UTF-8":
		return errNotUTF8
	case strings.HasPrefix(text, "invalid surrogate pair"):
		return errors.New("half of a surrogate pair, which is no character")
	}
	return fmt.Errorf("not JSON: %w", err)
}

// notObject returns the error for a JSON value that is not an object. c is the first byte of the value.
func notObject(c byte) error {
	kind := "a number"
	switch c {
	case '[':
		kind = "an array"
	case '"':
		kind = "a string"
	case 't', 'f':
		kind = "a boolean"
	case 'n':
		kind = "null"
	}
	return fmt.Errorf("expected an object such as {\"id\":\"1\"}, and found %s", kind)
}

var errNotUTF8 = errors.New("not UTF-8")

// notUTF8 returns the error for a text with this byte, which most often is Windows-1252: spreadsheets write it.
func notUTF8(c byte) error {
	if c < 0xa0 {
		return fmt.Errorf("%w: the byte %#x, as Windows-1252 has it", errNotUTF8, c)
	}
	return fmt.Errorf("%w: the byte %#x, which is \"%c\" in Windows-1252", errNotUTF8, c, c)
}

// invalidUTF8 returns the offset of the first byte that is not valid UTF-8. found is false if there is
// none.
func invalidUTF8(text []byte) (offset int, found bool) {
	if utf8.Valid(text) {
		return 0, false
	}
	for i, r := range string(text) {
		if r == utf8.RuneError && !bytes.HasPrefix(text[i:], []byte("\ufffd")) {
			return i, true
		}
	}
	return 0, false
}

// A jsonReader reads an array of objects, or objects with white space between them.
type jsonReader struct {
	*jsontext.Decoder
	name  string
	lines *lineIndex
	array bool
}

func readJSON(in *bufio.Reader, name string, yield func(Record, error) bool) {
	lines := &lineIndex{source: in, first: 1, starts: []int64{0}}
	d := &jsonReader{Decoder: jsontext.NewDecoder(lines, lenient()...), name: name, lines: lines}
	if d.array = d.PeekKind() == '['; d.array {
		_, _ = d.ReadToken() // the bracket
	}
	var compact []byte
	for !d.array || d.PeekKind() != ']' {
		raw, err := d.ReadValue()
		if err == io.EOF {
			return
		}
		record, err := d.record(raw, err, &compact)
		if !yield(record, err) || err != nil {
			return
		}
	}
	if err := d.end(); err != nil {
		yield(Record{}, err)
	}
}

func (d *jsonReader) record(raw jsontext.Value, err error, compact *[]byte) (Record, error) {
	if err != nil {
		return Record{}, d.reworded(err)
	}
	start := d.InputOffset() - int64(len(raw))
	line, _ := d.lines.position(start)
	if raw[0] != '{' {
		return Record{}, d.errorAt(start, notObject(raw[0]))
	}
	*compact, err = jsontext.AppendFormat((*compact)[:0], raw, lenient()...)
	return Record{Line: line, JSON: *compact}, err
}

// end reads the closing bracket of the array, and checks that nothing follows.
func (d *jsonReader) end() error {
	_, _ = d.ReadToken() // the bracket
	d.PeekKind()
	rest := d.UnreadBuffer()
	at := d.InputOffset() + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n")))
	switch _, err := d.ReadToken(); {
	case err == io.EOF:
		return nil
	case err == nil || fault.IsA[*jsontext.SyntacticError](err):
		return d.errorAt(at, errors.New("text after the array"))
	default:
		return d.reworded(err)
	}
}

// reworded returns an error of the decoder in our words, with its position.
func (d *jsonReader) reworded(err error) error {
	bad, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return errors.Unwrap(err) // the error of the source
	}
	switch {
	case bad.Err == io.ErrUnexpectedEOF:
		err = errors.New("the text ends inside of a JSON value")
	case !d.array && bad.JSONPointer == "" && strings.HasPrefix(bad.Err.Error(), "invalid character ',' at start of value"):
		err = errComma
	default:
		err = notJSON(bad.Err)
	}
	return d.errorAt(bad.ByteOffset, err)
}

func (d *jsonReader) errorAt(offset int64, err error) error {
	line, column := d.lines.position(offset)
	return &Error{Name: d.name, Line: line, Column: column, Err: err}
}

// A lineIndex reads from a source and records where lines begin, to convert offsets into lines and
// columns.
type lineIndex struct {
	source io.Reader
	size   int64   // number of bytes read
	starts []int64 // offsets of lines; position drops the lines before its result
	first  int     // number of the line at starts[0]
}

func (l *lineIndex) Read(p []byte) (int, error) {
	n, err := l.source.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.starts = append(l.starts, l.size+int64(i)+1)
		}
	}
	l.size += int64(n)
	return n, err
}

// position returns the line and the column of an offset, both counted from 1. Offsets must not decrease
// from call to call.
func (l *lineIndex) position(offset int64) (line, column int) {
	i, found := slices.BinarySearch(l.starts, offset)
	if !found {
		i--
	}
	l.starts, l.first = l.starts[i:], l.first+i
	return l.first, int(offset-l.starts[0]) + 1
}
