package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Field is a member of the JSON object in a record.
type Field struct {
	Name string
	JSON []byte // the value
}

// Fields returns an iterator over the fields of a record, in their order. Their JSON shares the memory
// of record. If record is not a JSON object, the iteration ends with an error.
func Fields(record []byte) iter.Seq2[Field, error] { return fields(record, lenient()) }

// UniqueFields is like [Fields], but a name that occurs twice in an object of the record ends the
// iteration with an error.
func UniqueFields(record []byte) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		for f, err := range fields(record, append(lenient(), jsontext.AllowDuplicateNames(false))) {
			if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(err, jsontext.ErrDuplicateName) {
				err = fmt.Errorf("the record has the field %.64q twice", strings.Join(slices.Collect(bad.JSONPointer.Tokens()), "."))
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func fields(record []byte, o []jsontext.Options) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		d := jsontext.NewDecoder(bytes.NewBuffer(record), o...)
		if kind := d.PeekKind(); kind != '{' {
			yield(Field{}, fmt.Errorf("expected an object, and found %v", kind))
			return
		}
		_, err := d.ReadToken() // the brace
		for err == nil && d.PeekKind() != '}' {
			var name jsontext.Token
			if name, err = d.ReadToken(); err != nil {
				break
			}
			f := Field{Name: name.String()}
			if f.JSON, err = d.ReadValue(); err == nil && !yield(f, nil) {
				return
			}
		}
		if err != nil {
			yield(Field{}, err)
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
