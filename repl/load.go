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
// found are present, they must agree with the rest; other members are ignored. Where
// JSON parsers silently differ (invalid UTF-8, unpaired surrogates, repeated members),
// ParseEntry returns an error.
func ParseEntry(line string) (Entry, error) {
	if !utf8.ValidString(line) {
		return Entry{}, errors.New("not UTF-8; put other bytes into key_b64 and value_b64")
	}
	var all map[memberName]json.RawMessage
	err := json.Unmarshal([]byte(line), &all)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return Entry{}, fmt.Errorf("byte %d: JSON: %w", syntax.Offset, err)
	}
	if all == nil {
		return Entry{}, fmt.Errorf("want a JSON object, got %s", kindOf(strings.TrimSpace(line)))
	}
	members := make(entryMembers)
	for name, value := range all {
		if err := checkText(*name.text, line); err != nil {
			return Entry{}, fmt.Errorf("the name of a member: %w", err)
		}
		switch name := *name.text; name {
		case "key", "key_b64", "value", "value_b64", "op", "found":
			if members[name] != "" {
				return Entry{}, fmt.Errorf("%s appears twice", name)
			}
			members[name] = string(value)
		}
	}
	return members.entry()
}

// A memberName is the name of a member, as the key of a map. It is a pointer so that names
// that are the same have an element each: ParseEntry refuses them.
type memberName struct{ text *string }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *memberName) UnmarshalText(name []byte) error {
	n.text = new(string(name))
	return nil
}

// entryMembers are the members of an entry as JSON text, by name.
type entryMembers map[string]string

func (m entryMembers) entry() (Entry, error) {
	var e Entry
	if op := m["op"]; op != "" && op != `"get"` {
		return e, fmt.Errorf("op is %s: want what get -o json prints", shown(op))
	}
	key, ok, err := m.bytes("key")
	if err != nil {
		return e, err
	}
	if !ok {
		return e, errors.New("no key: want key, or key_b64")
	}
	value, ok, err := m.bytes("value")
	if err != nil {
		return e, err
	}
	switch found := m["found"]; {
	case found != "" && found != "true" && found != "false":
		return e, fmt.Errorf("found is %s: want true or false", kindOf(found))
	case found == "false" && ok:
		return e, errors.New("found is false, but there is a value")
	case found != "false" && !ok:
		return e, errors.New("no value: want value, or value_b64")
	}
	return Entry{Key: key, Value: []byte(value), Found: ok}, nil
}

// bytes returns the bytes of a member, given as text or as base64; ok is false if it is absent.
func (m entryMembers) bytes(name string) (s string, ok bool, err error) {
	text, encoded := m[name], m[name+"_b64"]
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
		if strings.ContainsAny(s, "\r\n") { // the decoder skips them
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
	// The escapes in raw: a pair of surrogates is one, and a surrogate alone is a group.
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
