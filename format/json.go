package format

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// The fields of a result form a tree, for the json output and for templates. Its leaves
// are bool, int, int64, uint64, float64, null, time.Time, Version, jsonText and string. A string may
// hold any bytes.
type (
	// An object keeps its fields in order. A field whose value is nil is not printed.
	object []field
	field  struct {
		name  string
		value any
	}
	list []any
	null struct{}

	// A jsonText is a JSON value as text. It is printed without spaces between tokens, and its
	// strings are escaped like all other strings.
	jsonText string
)

// when returns value if ok, else nil.
func when(ok bool, value any) any {
	if ok {
		return value
	}
	return nil
}

func nonEmpty(s string) any { return when(s != "", s) }

func nonZero(d time.Duration) any { return when(d != 0, d) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// member returns the name and the text for a string field. JSON cannot represent a string that is
// not UTF-8, so member encodes such a string in base64 and appends _b64 to the name.
func member(name, s string) (string, string) {
	if utf8.ValidString(s) {
		return name, s
	}
	return name + "_b64", base64.StdEncoding.EncodeToString([]byte(s))
}

func appendObject(dst []byte, r fielder) []byte {
	o := objectWriter{dst: append(dst, '{')}
	r.fields(&o)
	return append(o.dst, '}')
}

func (all object) fields(o *objectWriter) {
	for _, f := range all {
		o.add(f.name, f.value)
	}
}

// appendJSON appends a value of the tree, or of the data that a template receives, as JSON.
func appendJSON(dst []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case string:
		if !utf8.ValidString(v) {
			_, text := member("", v)
			return appendObject(dst, object{{"b64", text}})
		}
		return appendString(dst, v)
	case text:
		return appendJSON(dst, string(v))
	case time.Time:
		return append(appendTime(append(dst, '"'), v), '"')
	case Version:
		return appendObject(dst, versionFields{v})
	case jsonText:
		return appendJSONText(dst, string(v))
	case object:
		return appendObject(dst, v)
	case map[string]any:
		o := make(object, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value := v[name]
			if base, ok := strings.CutSuffix(name, "_b64"); ok && v[base] != nil {
				continue // appending v[base] adds the _b64 field
			}
			if t, ok := value.(text); ok {
				value = string(t)
			}
			o = append(o, field{name, value})
		}
		return appendObject(dst, o)
	case list:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	}
	return append(dst, "null"...)
}

func appendFloat(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'f', -1, 64) }

// appendJSONText appends value, which must be valid JSON, without spaces between tokens. Numbers are
// unchanged.
func appendJSONText(dst []byte, value string) []byte {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			end := i + 1
			for ; value[end] != '"'; end++ {
				if value[end] == '\\' {
					end++
				}
			}
			var s string
			if err := json.Unmarshal([]byte(value[i:end+1]), &s); err == nil {
				dst = appendString(dst, s)
			}
			i = end
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendString appends s as a JSON string. It escapes characters that are not safe on a terminal.
// Unlike encoding/json, it does not escape characters that are special in HTML.
func appendString(dst []byte, s string) []byte {
	return append(appendEscaped(append(dst, '"'), s, `"\`, appendJSONEscape), '"')
}

func appendJSONEscape(dst []byte, char string) []byte {
	if strings.Contains("\n\r\t", char) {
		return appendEscape(dst, char)
	}
	r, _ := utf8.DecodeRuneInString(char)
	return appendUnicode(dst, r)
}

// appendUnicode appends r as \u escapes, one for each UTF-16 code unit.
func appendUnicode(dst []byte, r rune) []byte {
	for _, unit := range utf16.AppendRune(nil, r) {
		dst = append(dst, '\\', 'u',
			hexDigits[unit>>12], hexDigits[unit>>8&15], hexDigits[unit>>4&15], hexDigits[unit&15])
	}
	return dst
}
