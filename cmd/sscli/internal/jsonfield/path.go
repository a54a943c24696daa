package jsonfield

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Path leads from a JSON value to one of its fields: .config.mode, .list[2]. The empty Path, written
// as a dot, is the value itself. A name that is empty, or has characters other than letters, digits, _
// and -, is written as a JSON string: .config["odd name"]. Each step is the name of a member (a string)
// or the index of an element (an int).
type Path []any

// String returns the path in the syntax of [ParsePath].
func (p Path) String() string {
	if len(p) == 0 {
		return "."
	}
	var out strings.Builder
	for i, step := range p {
		name, isName := step.(string)
		switch {
		case isName && name != "" && plain(name) == len(name):
			out.WriteString("." + name)
			continue
		case i == 0:
			out.WriteByte('.')
		}
		out.WriteString("[" + Value{step, true}.String() + "]")
	}
	return out.String()
}

// plain returns the length, in bytes, of the longest prefix of text that is a name without quotes.
func plain(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 {
		return len(text)
	}
	return end
}

// ParsePath parses a path, which may also begin with [ in place of .[ . If a step is invalid, the error has
// the offset of the step in text, in bytes.
func ParsePath(text string) (Path, error) {
	switch {
	case text == ".":
		return Path{}, nil
	case text == "":
		return nil, errors.New("the path is empty: expected one such as .config.mode, or a dot for the whole value")
	}
	var p Path
	at := 0
	if strings.HasPrefix(text, ".[") {
		at = 1
	}
	for at < len(text) {
		step, length := nextStep(text[at:])
		if length == 0 {
			return nil, fmt.Errorf("byte %d: expected .name, [number] or [\"name\"], as in .config.mode or .list[2]", at)
		}
		p = append(p, step)
		at += length
	}
	return p, nil
}

// nextStep parses the step at the beginning of text, and returns it with its length. The length is 0
// if text does not begin with a step.
func nextStep(text string) (step any, length int) {
	if n := plain(text[1:]); text[0] == '.' && n > 0 {
		return text[1 : 1+n], 1 + n
	}
	if len(text) < 2 || text[0] != '[' || unicode.IsSpace(rune(text[1])) {
		return nil, 0
	}
	d := json.NewDecoder(strings.NewReader(text[1:]))
	d.UseNumber()
	if d.Decode(&step) != nil {
		return nil, 0
	}
	end := 1 + int(d.InputOffset())
	if number, ok := step.(json.Number); ok {
		index, err := strconv.ParseUint(number.String(), 10, 31)
		if err != nil {
			return nil, 0
		}
		step = int(index)
	} else if _, ok := step.(string); !ok || !utf8.ValidString(text[:end]) {
		return nil, 0
	}
	if !strings.HasPrefix(text[end:], "]") {
		return nil, 0
	}
	return step, end + 1
}
