package usage

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/textfile"
	"github.com/sscli/sscli/format"
)

// ReadKeys reads the file of --keys-from, or standard input if its name is "-".
func ReadKeys(name string, read func(name, what string) ([]byte, error)) ([]string, error) {
	text, err := read(name, "the keys, one per line")
	if fault.IsA[*fs.PathError](err) && name != "-" {
		return nil, &fault.UsageError{Err: fmt.Errorf("--keys-from: %w", err)}
	}
	if err != nil {
		return nil, err
	}
	if text, err = textfile.Decode(text); err != nil {
		return nil, fault.Usagef("--keys-from: %w", err)
	}
	return parseKeys(text)
}

// parseKeys parses keys in the form of the raw output, one per line. It ignores empty lines.
func parseKeys(text []byte) (keys []string, err error) {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line == "" {
			continue
		}
		key, err := format.Unescape(line)
		if err != nil {
			return nil, fault.Usagef("--keys-from: line %d: %w", n, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
