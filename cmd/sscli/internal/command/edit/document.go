package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// A document is a value and the text that stands for it in an editor.
type document struct {
	stored  []byte
	text    []byte
	isJSON  bool // an object or an array: the text must be JSON too
	compact bool // stored is JSON without spaces, and text is indented
	newline bool // text ends with a newline that stored does not have
}

// newDocument returns the document of a value. ok is false if the value is not text, which an
// editor may damage.
func newDocument(value []byte) (d document, ok bool) {
	if !utf8.Valid(value) || bytes.IndexByte(value, 0) >= 0 {
		return document{}, false
	}
	d = document{stored: value, text: value, isJSON: isContainer(value) && json.Valid(value)}
	var packed, indented bytes.Buffer
	if d.isJSON && json.Compact(&packed, value) == nil && bytes.Equal(packed.Bytes(), value) && json.Indent(&indented, value, "", "  ") == nil {
		d.compact, d.text = true, indented.Bytes()
	}
	// Many editors add a newline at the end of a file.
	if !bytes.HasSuffix(d.text, []byte("\n")) {
		d.newline = true
		d.text = append(d.text[:len(d.text):len(d.text)], '\n')
	}
	return d, true
}

// isContainer reports whether a text begins like a JSON object or array.
func isContainer(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// value returns the value to store for an edited text. If the document was JSON and the text is
// not, the error says why, and the value is the text without the newline that was added.
func (d document) value(text []byte) ([]byte, error) {
	value := text
	if d.newline {
		value = bytes.TrimSuffix(value, []byte("\n"))
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

// checkJSON returns an error with the line and column, from 1, if a text is not JSON.
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
