package usage

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// KeysFrom is the flag --keys-from of a command that accepts several keys.
type KeysFrom struct{ file config.File }

// Bind adds the flag to fs.
func (k *KeysFrom) Bind(fs *pflag.FlagSet) {
	fs.Var(&k.file, "keys-from", "read more keys from `FILE`, or - for standard input: one per line, with C escapes")
}

// Given reports whether the flag was given.
func (k *KeysFrom) Given() bool { return k.file != "" }

// Keys returns the keys from the operands and the file. Without operands and without the flag, it
// returns an error. The file may be empty. Keys calls read with the name of the file, which may be "-"
// for standard input, and with what the file has and in which form.
func (k *KeysFrom) Keys(operands []string, read func(name, what, form string) (string, error)) ([]string, error) {
	switch {
	case !k.Given() && len(operands) == 0:
		return nil, fault.Usagef("missing KEY")
	case !k.Given():
		return operands, nil
	}
	text, err := read(string(k.file), "the keys", ", one per line")
	if fault.IsA[*fs.PathError](err) && k.file != "-" {
		return nil, &fault.UsageError{Err: fmt.Errorf("--keys-from: %w", err)}
	}
	if err != nil {
		return nil, err
	}
	decoded, err := files.DecodeText([]byte(text))
	if err != nil {
		return nil, fault.Usagef("--keys-from: %w", err)
	}
	keys, err := parseKeys(string(k.file), decoded)
	return slices.Concat(operands, keys), err // a copy: operands may share memory with the arguments after a --
}

// parseKeys parses the keys of a file in the form of the raw output, one per line. It ignores empty lines.
func parseKeys(file string, text []byte) (keys []string, err error) {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line == "" {
			continue
		}
		key, err := format.Unescape(line)
		if err != nil {
			return nil, fault.Usagef("--keys-from: %s: %w", format.Location(file, n, 0), err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
