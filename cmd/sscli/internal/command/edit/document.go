package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A document is a value and its text for an editor.
type document struct {
	stored  []byte // the value
	text    []byte
	isJSON  bool // the value is a JSON object or array
	compact bool // the value is JSON without unneeded white space, and text is indented
	newline bool // text ends with a newline that the value does not have
}

// newDocument returns the document of a value. ok is false if the value is not text, because an editor
// may damage such a value.
func newDocument(value []byte) (d document, ok bool) {
	if !utf8.Valid(value) || bytes.IndexByte(value, 0) >= 0 {
		return document{}, false
	}
	kind := jsontext.Value(value).Kind()
	d = document{stored: value, text: value, isJSON: (kind == '{' || kind == '[') && json.Valid(value)}
	var packed, indented bytes.Buffer
	if d.isJSON && json.Compact(&packed, value) == nil && bytes.Equal(packed.Bytes(), value) && json.Indent(&indented, value, "", "  ") == nil {
		d.compact, d.text = true, indented.Bytes()
	}
	if !bytes.HasSuffix(d.text, []byte("\n")) { // many editors would add one
		d.newline = true
		d.text = append(d.text[:len(d.text):len(d.text)], '\n')
	}
	return d, true
}

// value returns the value to store for an edited text. If d.isJSON is true and the text is not
// JSON, value returns the text as the user wrote it, and an error that says why it is not JSON.
func (d document) value(text []byte) ([]byte, error) {
	value := text
	if d.newline {
		value = bytes.TrimSuffix(value, []byte("\n"))
		if len(value) < len(text) && !bytes.HasSuffix(d.stored, []byte("\r")) {
			value = bytes.TrimSuffix(value, []byte("\r")) // the editor ends lines with CRLF
		}
	}
	if !d.isJSON {
		return value, nil
	}
	if err := checkJSON(value); err != nil {
		return value, err
	}
	if d.compact {
		var packed bytes.Buffer
		if err := json.Compact(&packed, value); err != nil {
			return value, err
		}
		value = packed.Bytes()
	}
	return value, nil
}

// checkJSON returns an error unless text is valid JSON. A syntax error has the line and the column,
// counted from 1.
func checkJSON(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	var v json.RawMessage
	err := json.Unmarshal(text, &v)
	bad, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return err
	}
	before := text[:min(max(int(bad.Offset)-1, 0), len(text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("line %d, column %d: %w", line, column, err)
}
