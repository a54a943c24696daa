package repl

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
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
	if !json.Valid([]byte(line)) { // looks at the line once, Unmarshal twice
		var raw json.RawMessage
		err := json.Unmarshal([]byte(line), &raw)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return Entry{}, fmt.Errorf("byte %d: JSON: %w", syntax.Offset, err)
		}
		return Entry{}, fmt.Errorf("JSON: %w", err)
	}
	line = strings.Trim(line, jsonSpace)
	if line[0] != '{' {
		return Entry{}, fmt.Errorf("want a JSON object, got %s", kindOf(line))
	}
	got, err := members(line)
	if err != nil {
		return Entry{}, err
	}
	return got.entry()
}

// entryMembers are the members of an entry as JSON text, empty if absent.
type entryMembers struct {
	key, keyB64, value, valueB64, op, found string
}

// named returns the member with a name, nil if entries have no such member.
func (m *entryMembers) named(name string) *string {
	switch name {
	case "key":
		return &m.key
	case "key_b64":
		return &m.keyB64
	case "value":
		return &m.value
	case "value_b64":
		return &m.valueB64
	case "op":
		return &m.op
	case "found":
		return &m.found
	}
	return nil
}

// members splits an object, which must be valid JSON.
func members(s string) (entryMembers, error) {
	var got entryMembers
	s = strings.TrimLeft(s[1:], jsonSpace)
	for s[0] != '}' {
		var raw, value string
		raw, s = cutValue(s)
		name, err := unquoteJSON(raw)
		if err != nil {
			return got, fmt.Errorf("the name of a member: %w", err)
		}
		s = strings.TrimLeft(s, jsonSpace)[1:] // the colon
		value, s = cutValue(strings.TrimLeft(s, jsonSpace))
		if at := got.named(name); at != nil {
			if *at != "" {
				return got, fmt.Errorf("%s appears twice", name)
			}
			*at = value
		}
		s = strings.TrimLeft(strings.TrimLeft(s, jsonSpace), ",")
		s = strings.TrimLeft(s, jsonSpace)
	}
	return got, nil
}

const jsonSpace = " \t\r\n"

// cutValue cuts s after the value at its beginning.
func cutValue(s string) (value, rest string) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return s[:i], s[i:]
			}
			depth--
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s[:i], s[i:]
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return s[:i+1], s[i+1:]
		}
	}
	return s, ""
}

func (m *entryMembers) entry() (Entry, error) {
	var e Entry
	if m.op != "" && m.op != `"get"` {
		return e, fmt.Errorf("op is %s: want what get -o json prints", shown(m.op))
	}
	key, ok, err := bytesOf("key", m.key, m.keyB64)
	if err != nil {
		return e, err
	}
	if !ok {
		return e, errors.New("no key: want key, or key_b64")
	}
	value, ok, err := bytesOf("value", m.value, m.valueB64)
	if err != nil {
		return e, err
	}
	switch {
	case m.found != "" && m.found != "true" && m.found != "false":
		return e, fmt.Errorf("found is %s: want true or false", kindOf(m.found))
	case m.found == "false" && ok:
		return e, errors.New("found is false, but there is a value")
	case m.found != "false" && !ok:
		return e, errors.New("no value: want value, or value_b64")
	}
	return Entry{Key: key, Value: []byte(value), Found: ok}, nil
}

// bytesOf returns the bytes of a member, given as text or as base64; ok is false if it is
// absent.
func bytesOf(name, text, b64 string) (s string, ok bool, err error) {
	switch {
	case text != "" && b64 != "":
		return "", false, fmt.Errorf("%s and %s_b64: want one of them", name, name)
	case text != "":
		if s, err = stringOf(text); err != nil {
			return "", false, fmt.Errorf("%s is %w", name, err)
		}
		return s, true, nil
	case b64 != "":
		if s, err = stringOf(b64); err != nil {
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
func stringOf(raw string) (string, error) {
	if raw[0] != '"' {
		return "", fmt.Errorf("%s: want a string", kindOf(raw))
	}
	s, err := unquoteJSON(raw)
	if err != nil {
		return "", fmt.Errorf("not text: %w", err)
	}
	return s, nil
}

// unquoteJSON decodes a JSON string, which must be valid but for unpaired surrogates.
func unquoteJSON(raw string) (string, error) {
	s := raw[1 : len(raw)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(s[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				if i+6 >= len(s) || s[i+1] != '\\' || s[i+2] != 'u' {
					return "", fmt.Errorf(`\u%04x is half of a surrogate pair; bytes that are not text go into a member with _b64`, r)
				}
				pair := utf16.DecodeRune(r, hex4(s[i+3:]))
				if pair == utf8.RuneError {
					return "", fmt.Errorf(`\u%04x is half of a surrogate pair; bytes that are not text go into a member with _b64`, r)
				}
				r, i = pair, i+6
			}
			out = utf8.AppendRune(out, r)
		default: // a quote or a slash
			out = append(out, c)
		}
	}
	return string(out), nil
}

// hex4 decodes the four hexadecimal digits at the beginning of s.
func hex4(s string) rune {
	n, _ := strconv.ParseUint(s[:4], 16, 16)
	return rune(n)
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
