package records

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
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
		wrong := &Error{Name: name, Line: n, Column: 1}
		if compact, wrong.Err = ParseLine(compact[:0], line); wrong.Err == nil {
			if !yield(Record{Line: n, JSON: compact}, nil) {
				return
			}
			continue
		}
		if at, ok := errors.AsType[*offsetError](wrong.Err); ok {
			wrong.Column += at.offset
		}
		yield(Record{}, wrong)
		return
	}
}

// An offsetError is an error at a byte offset in a text.
type offsetError struct {
	offset int
	err    error
}

func (e *offsetError) Error() string { return e.err.Error() }
func (e *offsetError) Unwrap() error { return e.err }

// ParseLine parses a line of a stored value, and appends its object without white space to compact.
func ParseLine(compact, line []byte) ([]byte, error) {
	text := bytes.TrimRight(line, "\r\n")
	start := len(text) - len(bytes.TrimLeft(text, " \t"))
	switch {
	case len(text) == start:
		return nil, errors.New("the line is blank: expected a record")
	case bytes.HasPrefix(text, bom):
		return nil, errors.New("the value begins with a byte order mark: expected a record")
	}
	if i, ok := invalidUTF8(text); ok {
		return nil, &offsetError{i, errors.New("not UTF-8")}
	}
	out := bytes.NewBuffer(compact)
	if json.Compact(out, text) != nil {
		return nil, lineError(text)
	}
	if text[start] != '{' {
		return nil, &offsetError{start, notObject(text[start])}
	}
	return out.Bytes(), nil
}

// errComma is the error for records that a comma separates outside an array.
var errComma = errors.New("a comma after a record: expected a newline alone between records, or all of them in [ ]")

// lineError returns the error for a line that is not exactly one JSON value.
func lineError(text []byte) error {
	var raw json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	switch err := d.Decode(&raw); {
	case err == io.ErrUnexpectedEOF:
		return &offsetError{len(text), errors.New("the line ends inside of a JSON value: a record must be on one line")}
	case err == nil: // the error is after the value
		end := int(d.InputOffset())
		end += skip(text[end:], " \t")
		if text[end] == ',' {
			return &offsetError{end, errComma}
		}
		return &offsetError{end, errors.New("text after the record: expected one record a line")}
	default:
		return syntaxError(0, err)
	}
}

// syntaxError adds the position to an error of a decoder whose text begins at offset.
func syntaxError(offset int, err error) *offsetError {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset += max(0, int(syntax.Offset)-1)
	}
	return &offsetError{offset, fmt.Errorf("not JSON: %w", err)}
}

// notObject returns the error for a JSON value that begins with c.
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
	return fmt.Errorf("expected a record, an object such as {\"id\":1}, and found %s", kind)
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8.
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
	*json.Decoder
	name  string
	seen  *window
	array bool
}

// readJSON reads an array of objects, or objects with white space between them.
func readJSON(in *bufio.Reader, name string, yield func(Record, error) bool) {
	seen := &window{source: in, line: 1}
	d := &jsonReader{Decoder: json.NewDecoder(seen), name: name, seen: seen}
	if d.array = d.isArray(); d.array {
		_, _ = d.Token() // the bracket
	}
	var compact bytes.Buffer
	for d.More() {
		record, err := d.record(&compact)
		if !yield(record, err) || err != nil {
			return
		}
	}
	if err := d.end(); err != nil {
		yield(Record{}, err)
	}
}

// isArray reports whether the first value is an array. It ignores a read error, which the decoder
// returns again later.
func (d *jsonReader) isArray() bool {
	_ = d.More() // reads up to the first value
	rest := bytes.TrimLeft(d.seen.from(d.InputOffset()), " \t\r\n")
	return len(rest) > 0 && rest[0] == '['
}

// record reads the next object.
func (d *jsonReader) record(compact *bytes.Buffer) (Record, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return Record{}, d.wrong(err)
	}
	start := d.InputOffset() - int64(len(raw))
	line, _ := d.seen.position(start)
	if i, found := invalidUTF8(raw); found {
		return Record{}, d.errorAt(start+int64(i), errors.New("not UTF-8"))
	}
	if raw[0] != '{' {
		return Record{}, d.errorAt(start, notObject(raw[0]))
	}
	compact.Reset()
	if err := json.Compact(compact, raw); err != nil {
		return Record{}, err // cannot happen: the decoder accepted it
	}
	d.seen.discard(d.InputOffset())
	return Record{Line: line, JSON: compact.Bytes()}, nil
}

// end checks that nothing follows the records.
func (d *jsonReader) end() error {
	if d.array {
		if _, err := d.Token(); err != nil {
			return d.wrong(err)
		}
	}
	switch _, err := d.Token(); {
	case err == io.EOF:
		return nil
	case err == nil && d.array:
		return d.errorAt(d.InputOffset()-1, errors.New("text after the array"))
	default:
		return d.wrong(err)
	}
}

// wrong adds the position to an error of the decoder. The decoder does not always know the position,
// so wrong parses the text after the last record again.
func (d *jsonReader) wrong(err error) error {
	if err == io.EOF && d.array { // the decoder returns io.EOF for the truncated array [{},
		err = io.ErrUnexpectedEOF
	}
	if _, syntax := errors.AsType[*json.SyntaxError](err); !syntax && err != io.ErrUnexpectedEOF {
		return err
	}
	at := d.InputOffset()
	rest := d.seen.from(at)
	start := skip(rest, " \t\r\n")
	if start < len(rest) && rest[start] == ',' {
		if d.array {
			start += 1 + skip(rest[start+1:], " \t\r\n")
		} else {
			return d.errorAt(at+int64(start), errComma)
		}
	}
	var raw json.RawMessage
	again := json.NewDecoder(bytes.NewReader(rest[start:])).Decode(&raw)
	switch again {
	case io.EOF, io.ErrUnexpectedEOF:
		return d.errorAt(at+int64(len(rest)), errors.New("the text ends inside of a JSON value"))
	case nil: // the decoder expected a comma
		return d.errorAt(at+int64(start), fmt.Errorf("not JSON: %w", err))
	}
	wrong := syntaxError(start, again)
	return d.errorAt(at+int64(wrong.offset), wrong.err)
}

func (d *jsonReader) errorAt(offset int64, err error) error {
	line, column := d.seen.position(offset)
	return &Error{Name: d.name, Line: line, Column: column, Err: err}
}

func skip(text []byte, chars string) int { return len(text) - len(bytes.TrimLeft(text, chars)) }

// A window reads from a source and keeps the text after the last record, to convert offsets into
// lines and columns.
type window struct {
	source io.Reader
	text   []byte // text that was read and not discarded
	base   int64  // offset of text in the source
	line   int    // line of base
	column int    // bytes before base in its line
}

// Read implements [io.Reader].
func (w *window) Read(p []byte) (int, error) {
	n, err := w.source.Read(p)
	w.text = append(w.text, p[:n]...)
	return n, err
}

// from returns the text from an offset on.
func (w *window) from(offset int64) []byte { return w.text[offset-w.base:] }

// position returns the line and the column of an offset.
func (w *window) position(offset int64) (line, column int) {
	before := w.text[:min(max(0, offset-w.base), int64(len(w.text)))]
	n := bytes.Count(before, []byte("\n"))
	if n == 0 {
		return w.line, w.column + len(before) + 1
	}
	return w.line + n, len(before) - bytes.LastIndexByte(before, '\n')
}

// discard forgets the text before an offset.
func (w *window) discard(offset int64) {
	line, column := w.position(offset)
	rest := copy(w.text, w.from(offset))
	w.text, w.base, w.line, w.column = w.text[:rest], offset, line, column-1
}
