package repl

import (
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
	Found bool // false: the key was missing when it was read

	Version string // the hybrid logical clock of the value, unchecked; empty = the line has none
}

// ParseEntry parses a line with a JSON object: the output of `get -o json`, or any
// object with the strings key and value. Bytes that are not UTF-8 are in key_b64 and
// value_b64 instead, in standard base64 (RFC 4648, section 4). If the members op and
// found are present, they must be consistent with the others; all other members are ignored. Where
// JSON parsers silently differ (invalid UTF-8, unpaired surrogates, repeated members),
// ParseEntry returns an error.
func ParseEntry(line string) (Entry, error) {
	var m entryMembers
	if err := parseObject(line, &m); err != nil {
		return Entry{}, err
	}
	return m.entry()
}

// ParsePair parses a JSON object with one member: the name is the key, and the value is a string.
// ParsePair is as strict as [ParseEntry].
func ParsePair(object string) (Entry, error) {
	var pair map[string]jsontext.Value
	if err := parseObject(object, &pair); err != nil {
		return Entry{}, err
	}
	if len(pair) != 1 {
		return Entry{}, fmt.Errorf("an object with %d members: expected one key and its value", len(pair))
	}
	e := Entry{Found: true}
	var text jsontext.Value
	for e.Key, text = range pair {
	}
	var err error
	e.Value, _, err = bytesOf("the value of "+format.BriefWord(e.Key), text, nil)
	return e, err
}

// parseObject parses a JSON object.
func parseObject(text string, into any) error {
	err := json.Unmarshal([]byte(text), into)
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return syntaxError(bad)
	}
	if bad, ok := errors.AsType[*json.SemanticError](err); ok {
		return fmt.Errorf("expected a JSON object, got %s", kindOf(bad.JSONKind))
	}
	return err
}

// syntaxError describes a JSON syntax error. Most JSON parsers accept repeated members and
// text that is not UTF-8, so syntaxError explains these two.
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

// entryMembers are the members of an entry. A missing member is nil.
type entryMembers struct {
	Key      jsontext.Value `json:"key"`
	KeyB64   jsontext.Value `json:"key_b64"`
	Value    jsontext.Value `json:"value"`
	ValueB64 jsontext.Value `json:"value_b64"`
	Op       jsontext.Value `json:"op"`
	Found    jsontext.Value `json:"found"`
	Version  jsontext.Value `json:"version"`
}

func (m *entryMembers) entry() (Entry, error) {
	var e Entry
	if op := string(m.Op); op != "" && op != `"get"` {
		return e, fmt.Errorf("op is %.32s: expected what get -o json prints", format.Escape(op))
	}
	key, ok, err := bytesOf("key", m.Key, m.KeyB64)
	if err != nil {
		return e, err
	}
	if !ok {
		return e, errors.New("no key: expected key, or key_b64")
	}
	value, ok, err := bytesOf("value", m.Value, m.ValueB64)
	if err != nil {
		return e, err
	}
	switch found := string(m.Found); {
	case found != "" && found != "true" && found != "false":
		return e, fmt.Errorf("found is %s: must be true or false", kindOf(m.Found.Kind()))
	case found == "false" && ok:
		return e, errors.New("found is false, but there is a value")
	case found != "false" && !ok:
		return e, errors.New("no value: expected value, or value_b64")
	}
	var version struct {
		HLC string `json:"hlc"`
	}
	if m.Version.Kind() == '{' {
		_ = json.Unmarshal(m.Version, &version) // a version of another form is ignored
	}
	return Entry{Key: string(key), Value: value, Found: ok, Version: version.HLC}, nil
}

// bytesOf returns the bytes of a member, given as text or as base64; ok is false if it is absent.
func bytesOf(name string, text, encoded jsontext.Value) (value []byte, ok bool, err error) {
	switch {
	case text != nil && encoded != nil:
		return nil, false, fmt.Errorf("%s and %s_b64: use only one of them", name, name)
	case text != nil:
		if text.Kind() != '"' {
			return nil, false, fmt.Errorf("%s is %s: expected a string", name, kindOf(text.Kind()))
		}
		value, err = jsontext.AppendUnquote([]byte{}, text)
		return value, true, err
	case encoded != nil:
		if encoded.Kind() != '"' {
			return nil, false, fmt.Errorf("%s_b64 is %s: expected a string", name, kindOf(encoded.Kind()))
		}
		if err := json.Unmarshal(encoded, &value); err != nil {
			return nil, false, fmt.Errorf("%s_b64 is not base64: %w", name, errors.Unwrap(err))
		}
		return value, true, nil
	}
	return []byte{}, false, nil
}

// kindOf names the type of a JSON value.
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
