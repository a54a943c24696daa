package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sscli/sscli/internal/yamltext"
)

// A kind is the kind of a value in a YAML or JSON document.
type kind int

const (
	null    kind = iota // also a missing value, or a scalar with a tag other than !!str
	text                // a string
	literal             // a number or a boolean
	mapping
	sequence
)

// A SyntaxError reports a file that is not YAML, or that has no authorization.
type SyntaxError struct {
	File, Message string
	Line          int
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }

// maxFile is the maximum size of a file, in bytes.
const maxFile = 4 << 20

// documents parses the YAML or JSON documents of a file.
func documents(ctx context.Context, name string, source []byte) (roots []*yamltext.Node, err error) {
	wrong := func(line int, message string) error { return &SyntaxError{name, message, line} }
	switch {
	case len(source) > maxFile:
		return nil, wrong(1, "larger than 4 MiB")
	case len(bytes.TrimSpace(source)) > 0 && (bytes.TrimSpace(source)[0] == '{' || strings.HasSuffix(name, ".json")) && looksLikeJSON(source):
		var syntax *json.SyntaxError
		if err := json.Unmarshal(source, new(any)); errors.As(err, &syntax) {
			// YAML in braces is read below
			if _, notYAML := yamltext.Parse(ctx, source); notYAML != nil {
				return nil, wrong(1+bytes.Count(source[:syntax.Offset], []byte("\n")), "not JSON: "+err.Error())
			}
		}
	case json.Valid(source): // JSON may be indented with tabs, but YAML may not
		source = bytes.ReplaceAll(source, []byte("\t"), []byte(" "))
	}
	roots, err = yamltext.Parse(ctx, source)
	if e, ok := errors.AsType[*yamltext.Error](err); ok {
		return nil, wrong(e.Line, e.Error())
	}
	return roots, err
}

// looksLikeJSON reports whether a text that is no JSON seems to be meant as JSON: its first name is quoted.
func looksLikeJSON(source []byte) bool {
	text := bytes.TrimLeft(source, "[{ \t\r\n")
	return !json.Valid(source) && len(text) > 0 && (text[0] == '"' || text[0] == '}')
}

// yaml11 returns the text of a scalar as kubectl reads it, which knows YAML 1.1, and whether it is a number or a boolean. A
// date is text.
func yaml11(n *yamltext.Node) (text string, other bool) {
	text = n.Value
	if !yamltext.IsPlain(n) || text == "" {
		return text, false
	}
	switch text {
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return "true", true
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return "false", true
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return strings.ToLower(strings.TrimPrefix(text, "+")), true
	}
	digits := text
	switch {
	case strings.IndexByte("+-.0123456789", text[0]) < 0:
		return text, false
	case text[0] != '.':
		digits = strings.ReplaceAll(text, "_", "")
	}
	if number, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return strconv.FormatInt(number, 10), true
	} else if errors.Is(err, strconv.ErrRange) {
		return digits, true
	}
	if number, err := strconv.ParseFloat(digits, 64); err == nil && strings.Trim(digits, "+-.eE0123456789") == "" {
		return strconv.FormatFloat(number, 'g', -1, 32), true
	}
	return text, false
}

// nodeKind returns the kind of n, which may be nil.
func nodeKind(n *yamltext.Node) kind {
	if _, ok := yamltext.Items(n); ok {
		return sequence
	}
	_, scalar := yamltext.Scalar(n)
	switch {
	case n != nil && yamltext.IsMapping(n):
		return mapping
	case scalar && yamltext.IsString(n):
		return text
	case scalar:
		return literal
	}
	return null
}

// get returns the value at a path of keys, or nil if there is none or if it is null.
func get(n *yamltext.Node, path ...string) *yamltext.Node {
	for _, name := range path {
		if n = yamltext.Member(n, name); nodeKind(n) == null {
			return nil
		}
	}
	return n
}
