package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
)

// A Field is a field of a record.
type Field struct {
	Name string
	JSON []byte // the value
}

// Fields returns the fields of a record in their order. It yields an error, last, if record is not a
// JSON object.
func Fields(record []byte) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		d := json.NewDecoder(bytes.NewReader(record))
		if open, err := d.Token(); err != nil || open != json.Delim('{') {
			yield(Field{}, fmt.Errorf("expected an object, and found %v: %w", open, err))
			return
		}
		for d.More() {
			name, err := d.Token()
			var value json.RawMessage
			if err == nil {
				err = d.Decode(&value)
			}
			if err != nil {
				yield(Field{}, err)
				return
			}
			if text, _ := name.(string); !yield(Field{text, value}, nil) {
				return
			}
		}
	}
}

// Cell returns the value as a cell of a table: a string's text, an empty cell for null, and any other
// value as JSON.
func (f Field) Cell() string {
	switch f.JSON[0] {
	case '"':
		var text string
		_ = json.Unmarshal(f.JSON, &text) // cannot fail: a decoder returned this JSON
		return text
	case 'n':
		return ""
	}
	return string(f.JSON)
}

// IsNumber reports whether the value is a number.
func (f Field) IsNumber() bool { return f.JSON[0] == '-' || f.JSON[0] >= '0' && f.JSON[0] <= '9' }
