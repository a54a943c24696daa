package sources

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// maxManifest is the maximum size of a manifest in bytes. It is also the maximum size of a ConfigMap.
const maxManifest = 1 << 20

// manifest returns a source for a YAML file that lists keys:
//
//	keys:
//	  - key: config/mode
//	    value: manual
//	    persist: true
//	    ttl: 30s
//	  - key: logo
//	    file: logo.png
//	  - key: sites
//	    dataset: sites.csv
//
// Names of files are relative to the manifest's directory.
func manifest(name string, o Options) (source, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, &fault.UsageError{Err: err}
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return nil, &fault.UsageError{Err: err}
	}
	all, err := parseManifest(text)
	if err != nil {
		return nil, &fault.UsageError{Err: fmt.Errorf("%s%w", format.Path(name), err)}
	}
	for i, f := range all {
		all[i].where = format.Path(name) + f.where
		if f.name != "" {
			all[i].name = config.Beside(name, f.name)
		}
	}
	return fileList(all, o), nil
}

const manifestForm = "the word keys: and below it a list, such as - {key: a, value: 1}"

// errorAt returns an error that begins with ":LINE: ". The caller puts the file's name before it.
func errorAt(line int, text string, args ...any) error {
	return fmt.Errorf(":%d: "+text, append([]any{line}, args...)...)
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

// parseManifest parses a manifest. The field where of each returned file is only ":LINE". Errors begin
// with ":LINE: " or ": ". The caller puts the file's name before them.
func parseManifest(text []byte) ([]file, error) {
	if len(text) > maxManifest {
		return nil, errors.New(": larger than 1 MiB: put large values into files")
	}
	text, err := files.DecodeText(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf(": %w", err)
	case !utf8.Valid(text):
		return nil, errors.New(": not YAML: expected UTF-8; other bytes go into a file")
	case nestedDeeply(text):
		return nil, errors.New(": nested too deeply: expected a list of keys")
	}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	var body ast.Node
	for _, d := range parsed.Docs {
		switch {
		case d.Body == nil:
		case body != nil:
			return nil, errorAt(lineOf(d.Body), "a second document: expected one")
		default:
			body = d.Body
		}
	}
	if body == nil {
		return nil, errors.New(": empty: expected " + manifestForm)
	}
	var all []file
	err = members(body, manifestForm, func(name string, n ast.Node) error {
		list, ok := n.(*ast.SequenceNode)
		switch {
		case name != "keys":
			return errorAt(lineOf(n), "unknown field %q: expected keys", name)
		case !ok:
			return errorAt(lineOf(n), "keys: expected a list")
		}
		lines := make(map[string]int)
		for _, n := range list.Values {
			f, err := parseKey(n)
			if err != nil {
				return err
			}
			if line := lines[f.key]; line > 0 {
				return errorAt(lineOf(n), "the key %s is in line %d already", format.BriefWord(f.key), line)
			}
			lines[f.key] = lineOf(n)
			all = append(all, f)
		}
		return nil
	})
	return all, err
}

// nestedDeeply reports whether text may be nested too deeply to parse. The memory that the YAML
// library uses grows with the square of the depth.
func nestedDeeply(text []byte) bool {
	const most = 200
	depth, deepest := 0, 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		deepest = max(deepest, depth)
	}
	return deepest > most || bytes.Contains(text, bytes.Repeat([]byte("- "), most)) || bytes.Contains(text, bytes.Repeat([]byte("? "), most))
}

// members calls f for each member of the mapping n. want describes the mapping, for the error if n
// is not a mapping.
func members(n ast.Node, want string, f func(name string, n ast.Node) error) error {
	mapping, ok := n.(ast.MapNode)
	if !ok {
		return errorAt(lineOf(n), "expected %s", want)
	}
	for m := mapping.MapRange(); m.Next(); {
		if m.Value() == nil {
			return errorAt(lineOf(m.Key()), "%s has no value", m.Key().GetToken().Value)
		}
		if err := f(m.Key().GetToken().Value, m.Value()); err != nil {
			return err
		}
	}
	return nil
}

// parseKey parses one element of the list of keys.
func parseKey(n ast.Node) (file, error) {
	f := file{where: fmt.Sprintf(":%d", lineOf(n))}
	var values []string
	hasKey := false
	err := members(n, "a key with its value, such as key: a and value: 1", func(name string, n ast.Node) (err error) {
		text, ok := config.Scalar(n)
		_, isBool := n.(*ast.BoolNode)
		switch {
		case !ok && name == "value":
			return errorAt(lineOf(n), `value: expected text; write "" for an empty value, and JSON in quotes or after a |`)
		case !ok:
			return errorAt(lineOf(n), "%s: expected text", name)
		}
		switch name {
		case "key":
			f.key, hasKey = text, true
		case "value":
			f.text = text
			values = append(values, name)
		case "file", "dataset":
			if text == "" {
				return errorAt(lineOf(n), "%s: expected the name of a file", name)
			}
			f.name, f.dataset = text, name == "dataset"
			values = append(values, name)
		case "persist":
			if !isBool {
				return errorAt(lineOf(n), "persist: must be true or false")
			}
			f.options.Persist = text == "true"
		case "ttl":
			f.options.TTL, err = parseTTL(text)
			if err != nil {
				return errorAt(lineOf(n), "ttl: %w", err)
			}
		default:
			return errorAt(lineOf(n), "unknown field %q: expected key, value, file, dataset, persist or ttl", name)
		}
		return nil
	})
	switch {
	case err != nil:
		return f, err
	case !hasKey:
		return f, errorAt(lineOf(n), "no key")
	case len(values) == 0:
		return f, errorAt(lineOf(n), "%s: expected value, file or dataset", format.BriefWord(f.key))
	case len(values) > 1:
		return f, errorAt(lineOf(n), "%s: %s: use only one of them", format.BriefWord(f.key), strings.Join(values, " and "))
	}
	return f, nil
}

// parseTTL parses a TTL, which must be a positive number of whole milliseconds.
func parseTTL(text string) (time.Duration, error) {
	ttl, err := config.ParseDuration(text)
	if err == nil && (ttl < time.Millisecond || ttl%time.Millisecond != 0) {
		err = fmt.Errorf("%s: expected whole milliseconds, at least 1ms", text)
	}
	return ttl, err
}

// syntaxError converts an error of the YAML library to one line of text.
func syntaxError(err error) error {
	at, ok := errors.AsType[yaml.Error](err)
	if !ok || at.GetToken() == nil {
		return errors.New(": not YAML")
	}
	message := strings.TrimSpace(at.GetMessage())
	if strings.ContainsFunc(message, unicode.IsControl) {
		message = "syntax error"
	}
	return errorAt(at.GetToken().Position.Line, "not YAML: %s", message)
}
