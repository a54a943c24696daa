package jsonfield

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Path leads from a JSON value to one of its fields: .config.mode, .list[2]. The empty Path,
// written as a dot, is the value itself. A name that is not made of letters, digits, _ and -
// is written as a JSON string: .config["odd name"].
type Path []step

// A step leads to a member of an object or to an element of an array.
type step struct {
	name    string
	index   int
	isIndex bool
}

// String returns the path as [ParsePath] reads it.
func (p Path) String() string {
	var out strings.Builder
	for i, s := range p {
		switch {
		case !s.isIndex && plain(s.name) == len(s.name) && s.name != "":
			out.WriteString("." + s.name)
			continue
		case i == 0:
			out.WriteByte('.')
		}
		if s.isIndex {
			out.WriteString("[" + strconv.Itoa(s.index) + "]")
		} else {
			out.WriteString("[" + Value{s.name, true}.String() + "]")
		}
	}
	if out.Len() == 0 {
		return "."
	}
	return out.String()
}

// plain returns the length of the name that text begins with and that needs no quotes.
func plain(text string) int {
	for i, r := range text {
		if r != '_' && r != '-' && (!unicode.IsLetter(r) && !unicode.IsDigit(r) || r == utf8.RuneError) {
			return i
		}
	}
	return len(text)
}

// ParsePath reads a path. The error says where it is wrong.
func ParsePath(text string) (Path, error) {
	p := Path{}
	if text == "." {
		return p, nil
	}
	for at := 0; at < len(text); {
		rest := text[at:]
		if n := plain(rest[1:]); rest[0] == '.' && n > 0 {
			p = append(p, step{name: rest[1 : 1+n]})
			at += 1 + n
			continue
		}
		if at == 0 && strings.HasPrefix(rest, ".[") {
			at++
			continue
		}
		s, n := bracketed(rest)
		if n == 0 || len(p) == 0 && at == 0 {
			return nil, fmt.Errorf("byte %d: want .name, [number] or [\"name\"], as in .config.mode or .list[2]", at)
		}
		p = append(p, s)
		at += n
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("the path is empty: want one such as .config.mode, or a dot for the whole value")
	}
	return p, nil
}

// bracketed reads the step in brackets that text begins with, and returns its length, which is
// 0 if there is none.
func bracketed(text string) (s step, length int) {
	if text[0] != '[' {
		return s, 0
	}
	body := text[1:]
	if !strings.HasPrefix(body, `"`) {
		number, _, closed := strings.Cut(body, "]")
		n, err := strconv.ParseUint(number, 10, 31)
		if !closed || err != nil || number != strconv.FormatUint(n, 10) {
			return s, 0
		}
		return step{index: int(n), isIndex: true}, len(number) + 2
	}
	// The string ends at the first quote that is not escaped.
	end := 1
	for ; end < len(body) && body[end] != '"'; end++ {
		if body[end] == '\\' {
			end++
		}
	}
	if end+1 >= len(body) || body[end+1] != ']' || !utf8.ValidString(body) || json.Unmarshal([]byte(body[:end+1]), &s.name) != nil {
		return s, 0
	}
	return s, end + 3
}
