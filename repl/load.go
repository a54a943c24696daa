package repl

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/format"
)

// An Entry is a key and its value, as printed by `get -o json`.
type Entry struct {
	Key   string
	Value []byte
	Found bool // false: the key was missing when it was read
}

// ParseEntry parses a line with a JSON object: the output of `get -o json`, or any
// object with the strings key and value. Bytes that are not UTF-8 are in key_b64 and
// value_b64 instead, in standard base64 (RFC 4648, section 4). If the members op and
// found are present, they must be consistent with the others; all other members are ignored. Where
// JSON parsers silently differ (invalid UTF-8, unpaired surrogates, repeated members),
// ParseEntry returns an error.
func ParseEntry(line string) (Entry, error) {
	if !utf8.ValidString(line) {
		return Entry{}, errors.New("not UTF-8; put other bytes into key_b64 and value_b64")
	}
	var m entryMembers
	err := json.Unmarshal([]byte(line), &m)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return Entry{}, fmt.Errorf("byte %d: JSON: %w", syntax.Offset, err)
	}
	if value := strings.TrimSpace(line); value[0] != '{' {
		return Entry{}, fmt.Errorf("want a JSON object, got %s", kindOf(value))
	}
	if err != nil {
		return Entry{}, fmt.Errorf("JSON: %w", err)
	}
	if err := checkNames(line); err != nil {
		return Entry{}, fmt.Errorf("the name of a member: %w", err)
	}
	return m.entry()
}

// checkNames returns an error if the name of a member of an object has an unpaired surrogate.
func checkNames(line string) error {
	if !strings.Contains(line, `\ud`) && !strings.Contains(line, `\uD`) {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &members); err != nil {
		return err
	}
	for name := range members {
		if err := checkText(name, line); err != nil {
			return err
		}
	}
	return nil
}

// A member is the value of a member of an object, as JSON.
type member struct {
	json  string
	times int // that the member appears
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *member) UnmarshalJSON(value []byte) error {
	m.json = string(value)
	m.times++
	return nil
}

// entryMembers are the members of an entry.
type entryMembers struct {
	// If the case of a name matches no field, encoding/json decodes the member to the first
	// field with the name in another case. These fields receive such members and are not used.
	KEY, KEY_B64, VALUE, VALUE_B64, OP, FOUND member

	Key      member `json:"key"`
	KeyB64   member `json:"key_b64"`
	Value    member `json:"value"`
	ValueB64 member `json:"value_b64"`
	Op       member `json:"op"`
	Found    member `json:"found"`
}

func (m *entryMembers) entry() (Entry, error) {
	var e Entry
	names := [...]string{"key", "key_b64", "value", "value_b64", "op", "found"}
	for i, times := range [...]int{m.Key.times, m.KeyB64.times, m.Value.times, m.ValueB64.times, m.Op.times, m.Found.times} {
		if times > 1 {
			return e, fmt.Errorf("%s appears twice", names[i])
		}
	}
	if op := m.Op.json; op != "" && op != `"get"` {
		return e, fmt.Errorf("op is %s: want what get -o json prints", shown(op))
	}
	key, ok, err := bytesOf("key", m.Key.json, m.KeyB64.json)
	if err != nil {
		return e, err
	}
	if !ok {
		return e, errors.New("no key: want key, or key_b64")
	}
	value, ok, err := bytesOf("value", m.Value.json, m.ValueB64.json)
	if err != nil {
		return e, err
	}
	switch found := m.Found.json; {
	case found != "" && found != "true" && found != "false":
		return e, fmt.Errorf("found is %s: want true or false", kindOf(found))
	case found == "false" && ok:
		return e, errors.New("found is false, but there is a value")
	case found != "false" && !ok:
		return e, errors.New("no value: want value, or value_b64")
	}
	return Entry{Key: key, Value: []byte(value), Found: ok}, nil
}

// bytesOf returns the bytes of a member, given as text or as base64; ok is false if it is absent.
func bytesOf(name, text, encoded string) (s string, ok bool, err error) {
	switch {
	case text != "" && encoded != "":
		return "", false, fmt.Errorf("%s and %s_b64: want one of them", name, name)
	case text != "":
		if s, err = stringOf(text); err != nil {
			return "", false, fmt.Errorf("%s is %w", name, err)
		}
		return s, true, nil
	case encoded != "":
		if s, err = stringOf(encoded); err != nil {
			return "", false, fmt.Errorf("%s_b64 is %w", name, err)
		}
		if strings.ContainsAny(s, "\r\n") { // the decoder would skip them
			return "", false, fmt.Errorf("%s_b64 is not base64: it contains line ends", name)
		}
		data, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil {
			return "", false, fmt.Errorf("%s_b64 is not base64: %w", name, err)
		}
		return string(data), true, nil
	}
	return "", false, nil
}

// stringOf decodes a JSON value that must be a string.
func stringOf(raw string) (s string, err error) {
	if raw[0] != '"' {
		return "", fmt.Errorf("%s: want a string", kindOf(raw))
	}
	if !strings.Contains(raw, `\`) {
		return raw[1 : len(raw)-1], nil
	}
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return "", err
	}
	if err := checkText(s, raw); err != nil {
		return "", fmt.Errorf("not text: %w", err)
	}
	return s, nil
}

// checkText returns an error if a JSON string has an unpaired surrogate, which encoding/json
// silently decodes to U+FFFD.
func checkText(decoded, raw string) error {
	if !strings.ContainsRune(decoded, utf8.RuneError) {
		return nil
	}
	// Matches each escape in raw, a pair of surrogates as one; an unpaired surrogate is group 1.
	escapes := regexp.MustCompile(`\\[^u]|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)`)
	for _, escape := range escapes.FindAllStringSubmatch(raw, -1) {
		if half := escape[1]; half != "" {
			return fmt.Errorf(`%s is half of a surrogate pair; bytes that are not text go into a member with _b64`, strings.ToLower(half))
		}
	}
	return nil
}

// kindOf names the type of a JSON value.
func kindOf(raw string) string {
	switch raw[0] {
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

// shown returns a JSON value for a message, shortened and escaped.
func shown(raw string) string {
	const most = 32
	if len(raw) > most {
		raw = raw[:most] + "…"
	}
	return format.Escape(raw)
}
