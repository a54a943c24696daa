package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/yamltext"
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
//	    separator: ";"
//
// Names of files are relative to the manifest's directory, and the files are in it, unless o.Follow is set.
func manifest(ctx context.Context, name string, o Options) (source, error) {
	in, err := files.Open(name)
	if err != nil {
		return nil, &fault.UsageError{Err: err}
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return nil, &fault.UsageError{Err: err}
	}
	all, err := parseManifest(ctx, text)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &fault.UsageError{Err: fmt.Errorf("%s%w", format.Location(name, 0, 0), err)}
	}
	for i, f := range all {
		all[i].where = format.Location(name, 0, 0) + f.where
		if f.name != "" {
			all[i].name, all[i].root = files.Beside(name, f.name), filepath.Dir(name)
		}
	}
	return fileList(all, o), nil
}

const manifestForm = "the word keys: and below it a list, such as - {key: a, value: 1}"

// errorAt returns an error that begins with ":LINE: ". The caller puts the file's name before it.
func errorAt(line int, text string, args ...any) error {
	return fmt.Errorf(":%d: "+text, append([]any{line}, args...)...)
}

// parseManifest parses a manifest. The field where of each returned file is only ":LINE". Errors begin
// with ":LINE: " or ": ". The caller puts the file's name before them.
func parseManifest(ctx context.Context, text []byte) ([]file, error) {
	if len(text) > maxManifest {
		return nil, errors.New(": larger than 1 MiB: put large values into files")
	}
	text, err := files.DecodeText(text)
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	roots, err := yamltext.Parse(ctx, text)
	if e, ok := errors.AsType[*yamltext.Error](err); ok {
		return nil, errorAt(e.Line, "%w", e)
	}
	switch {
	case err != nil:
		return nil, err
	case len(roots) == 0:
		return nil, errors.New(": empty: expected " + manifestForm)
	case len(roots) > 1:
		return nil, errorAt(roots[1].Line, "a second document: expected one")
	}
	var all []file
	err = members(roots[0], manifestForm, func(name string, n *yamltext.Node) error {
		list, ok := yamltext.Items(n)
		switch {
		case name != "keys":
			return errorAt(n.Line, "unknown field %q: expected keys", name)
		case !ok:
			return errorAt(n.Line, "keys: expected a list")
		}
		lines := make(map[string]int)
		for _, n := range list {
			f, err := parseKey(n)
			if err != nil {
				return err
			}
			if line := lines[f.key]; line > 0 {
				return errorAt(n.Line, "the key %s is in line %d already", format.BriefWord(f.key), line)
			}
			lines[f.key] = n.Line
			all = append(all, f)
		}
		return nil
	})
	return all, err
}

// members calls f for each member of the mapping n. want describes the mapping, for the error if n
// is not a mapping.
func members(n *yamltext.Node, want string, f func(name string, n *yamltext.Node) error) error {
	if _, isList := yamltext.Items(n); isList && want == manifestForm {
		return errorAt(n.Line, "a bare list: expected %s", want)
	}
	if !yamltext.IsMapping(n) {
		return errorAt(n.Line, "expected %s", want)
	}
	for key, n := range yamltext.Members(n) {
		if err := f(key.Value, n); err != nil {
			return err
		}
	}
	return nil
}

func parseKey(n *yamltext.Node) (file, error) {
	f := file{where: fmt.Sprintf(":%d", n.Line)}
	var values []string
	hasKey := false
	err := members(n, "a key with its value, such as key: a and value: 1", func(name string, n *yamltext.Node) (err error) {
		text, ok := yamltext.Scalar(n)
		switch {
		case !ok && name == "value":
			return errorAt(n.Line, `value: expected text; write "" for an empty value, and JSON in quotes or after a |`)
		case !ok:
			return errorAt(n.Line, "%s: expected text", name)
		}
		switch name {
		case "key":
			f.key, hasKey = text, true
		case "value":
			f.text = text
			values = append(values, name)
		case "file", "dataset":
			if text == "" {
				return errorAt(n.Line, "%s: expected the name of a file", name)
			}
			f.name, f.dataset = text, name == "dataset"
			values = append(values, name)
		case "separator":
			if f.comma, err = dataset.ParseSeparator(text); err != nil {
				return errorAt(n.Line, "separator: %w", err)
			}
		case "persist":
			if !yamltext.IsBool(n) {
				return errorAt(n.Line, "persist: must be true or false")
			}
			f.options.Persist = strings.EqualFold(text, "true")
		case "ttl":
			f.options.TTL, err = parseTTL(text)
			if err != nil {
				return errorAt(n.Line, "ttl: %w", err)
			}
		default:
			return errorAt(n.Line, "unknown field %q: expected key, value, file, dataset, separator, persist or ttl", name)
		}
		return nil
	})
	switch {
	case err != nil:
		return f, err
	case !hasKey:
		return f, errorAt(n.Line, "no key")
	case len(values) == 0:
		return f, errorAt(n.Line, "%s: expected value, file or dataset", format.BriefWord(f.key))
	case f.comma != 0 && !f.dataset:
		return f, errorAt(n.Line, "%s: separator without dataset", format.BriefWord(f.key))
	case len(values) > 1:
		return f, errorAt(n.Line, "%s: %s: use only one of them", format.BriefWord(f.key), strings.Join(values, " and "))
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
