package repl

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sscli/sscli/format"
)

// An Entry is a key and its value, as printed by `get -o json`.
type Entry struct {
	Key   string
	Value []byte
	Found bool // false = the key was missing when it was read

	Version string // the member version.hlc of the line, unchecked; empty if it is missing
}

// ParseEntry parses a line with a JSON object: the output of `get -o json`, or any
// object with the strings key and value. Bytes that are not UTF-8 are in key_b64 and
// value_b64 instead, in standard base64 (RFC 4648, section 4). If op is present, it must be
// "get"; if found is present, it must be true exactly when there is a value. Entry.Version is
// version.hlc; ParseEntry ignores all other members. It returns an error for input that JSON
// parsers interpret differently: invalid UTF-8, unpaired surrogates and repeated members.
func ParseEntry(line string) (Entry, error) {
	var m entryMembers
	if err := parseObject(line, &m); err != nil {
		return Entry{}, err
	}
	return m.entry()
}

// ParsePair parses a JSON object with one member, whose name is the key and whose value is
// a string. It is as strict as [ParseEntry].
func ParsePair(object string) (Entry, error) {
	var pair map[string]member
	if err := parseObject(object, &pair); err != nil {
		return Entry{}, err
	}
	if len(pair) != 1 {
		return Entry{}, fmt.Errorf("an object with %d members: expected one key and its value", len(pair))
	}
	e := Entry{Found: true}
	var text member
	for e.Key, text = range pair {
	}
	var err error
	e.Value, _, err = bytesOf("the value of "+format.BriefWord(e.Key), text, member{})
	return e, err
}

func parseObject(text string, into any) error {
	err := json.UnmarshalRead(strings.NewReader(text), into)
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return syntaxError(bad)
	}
	if bad, ok := errors.AsType[*json.SemanticError](err); ok {
		return fmt.Errorf("expected a JSON object, got %s", kindOf(bad.JSONKind))
	}
	return err
}

// syntaxError returns the error to report for a JSON syntax error. It explains the faults that most
// JSON parsers accept: repeated members, invalid UTF-8 and unpaired surrogates.
func syntaxError(err *jsontext.SyntacticError) error {
	what := fmt.Errorf("byte %d: JSON: %w", err.ByteOffset+1, err.Err)
	switch {
	case err.Err == jsontext.ErrDuplicateName:
		return fmt.Errorf("%s appears twice", format.BriefWord(err.JSONPointer.LastToken()))
	case strings.Contains(err.Err.Error(), "UTF-8"), strings.Contains(err.Err.Error(), "surrogate"):
		return fmt.Errorf("%w; bytes that are not text go into a member with _b64", what)
	}
	return what
}

// entryMembers are the members of the JSON object. A missing member is the zero value.
type entryMembers struct {
	key, keyB64, value, valueB64 member

	op    string // the JSON value; empty if it is "get" or missing
	found jsontext.Kind
	hlc   string // version.hlc
}

// A member is the value of a JSON member that should be a string.
type member struct {
	kind jsontext.Kind // 0 if the member is missing
	text []byte        // the unquoted text, if the member is a string
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (m *entryMembers) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return eachMember(d, func(name []byte) error {
		switch string(name) {
		case "key":
			return m.key.UnmarshalJSONFrom(d)
		case "value":
			return m.value.UnmarshalJSONFrom(d)
		case "key_b64":
			return m.keyB64.UnmarshalJSONFrom(d)
		case "value_b64":
			return m.valueB64.UnmarshalJSONFrom(d)
		case "op":
			op, err := d.ReadValue()
			if string(op) != `"get"` {
				m.op = string(op)
			}
			return err
		case "found":
			m.found = d.PeekKind()
		case "version":
			if d.PeekKind() == '{' {
				return m.version(d)
			}
		}
		return d.SkipValue()
	})
}

// version reads the member version, and ignores a version that has no string hlc.
func (m *entryMembers) version(d *jsontext.Decoder) error {
	return eachMember(d, func(name []byte) error {
		if string(name) != "hlc" || d.PeekKind() != '"' {
			return d.SkipValue()
		}
		hlc, err := d.ReadToken()
		if err == nil {
			m.hlc = hlc.String()
		}
		return err
	})
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (m *member) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if m.kind = value.Kind(); err == nil && m.kind == '"' {
		m.text, err = jsontext.AppendUnquote(make([]byte, 0, len(value)), value)
	}
	return err
}

// eachMember reads a JSON object, and calls do with the name of each member. do must read
// or skip the member's value.
func eachMember(d *jsontext.Decoder, do func(name []byte) error) error {
	if kind := d.PeekKind(); kind != '{' {
		if err := d.SkipValue(); err != nil {
			return err
		}
		return &json.SemanticError{JSONKind: kind}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		if bytes.IndexByte(name, '\\') < 0 {
			name = name[1 : len(name)-1]
		} else if name, err = jsontext.AppendUnquote(nil, name); err != nil {
			return err
		}
		if err := do(name); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func (m *entryMembers) entry() (Entry, error) {
	var e Entry
	if m.op != "" {
		return e, fmt.Errorf("op is %.32s: expected what get -o json prints", format.Escape(m.op))
	}
	key, ok, err := bytesOf("key", m.key, m.keyB64)
	if err != nil {
		return e, err
	}
	if !ok {
		return e, errors.New("no key: expected key, or key_b64")
	}
	value, ok, err := bytesOf("value", m.value, m.valueB64)
	if err != nil {
		return e, err
	}
	switch {
	case m.found != 0 && m.found != 't' && m.found != 'f':
		return e, fmt.Errorf("found is %s: must be true or false", kindOf(m.found))
	case m.found == 'f' && ok:
		return e, errors.New("found is false, but there is a value")
	case m.found != 'f' && !ok:
		return e, errors.New("no value: expected value, or value_b64")
	}
	return Entry{Key: string(key), Value: value, Found: ok, Version: m.hlc}, nil
}

// bytesOf returns the bytes of the member called name. text is this member, and encoded is the
// member name_b64, which has the bytes in base64. ok is false if both members are missing.
func bytesOf(name string, text, encoded member) (value []byte, ok bool, err error) {
	switch {
	case text.kind != 0 && encoded.kind != 0:
		return nil, false, fmt.Errorf("%s and %s_b64: use only one of them", name, name)
	case text.kind == '"':
		return text.text, true, nil
	case text.kind != 0:
		return nil, false, fmt.Errorf("%s is %s: expected a string", name, kindOf(text.kind))
	case encoded.kind == '"':
		if value, err = decodeBase64(encoded.text); err != nil {
			return nil, false, fmt.Errorf("%s_b64 is not base64: %w", name, errors.Unwrap(err))
		}
		return value, true, nil
	case encoded.kind != 0:
		return nil, false, fmt.Errorf("%s_b64 is %s: expected a string", name, kindOf(encoded.kind))
	}
	return []byte{}, false, nil
}

func decodeBase64(text []byte) (value []byte, err error) {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err == nil {
		err = json.Unmarshal(quoted, &value)
	}
	return value, err
}

func kindOf(kind jsontext.Kind) string {
	switch kind {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
