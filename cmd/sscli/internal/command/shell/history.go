package shell

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/repl"
)

// historyFile returns the name of the history file; empty for no history.
func historyFile(env func(string) (string, bool)) string {
	if name, ok := env("SSCLI_HISTFILE"); ok {
		return name
	}
	if dir := config.StateDir(env); dir != "" {
		return filepath.Join(dir, "history")
	}
	return ""
}

// maxKept is the longest word, in bytes, of an entry that is kept in the history.
const maxKept = 256

// keep reports whether to keep an entry in the history. It does not keep entries that begin with a
// space, or contain a long word or something that looks like a password.
func keep(text string) bool {
	if strings.HasPrefix(text, " ") {
		return false
	}
	for r := repl.NewReader(strings.NewReader(text)); ; {
		line, err := r.Next()
		if _, bad := errors.AsType[*repl.LineError](err); err != nil && !bad {
			return true
		}
		words := line.Words
		if len(words) == 0 { // the line has an error: look at its fields
			for _, field := range strings.Fields(line.Text) {
				words = append(words, repl.Word{Text: field})
			}
		}
		for _, w := range words {
			name, _, _ := strings.Cut(w.Text, "=")
			if len(w.Text) > maxKept || hasPassword(w.Text) ||
				strings.HasPrefix(name, "--pass") && name != "--password-file" {
				return false
			}
		}
	}
}

// hasPassword reports whether a word holds a URL with a password.
func hasPassword(word string) bool {
	_, rest, ok := strings.Cut(word, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(authority, "@")
	return at >= 0 && strings.Contains(authority[:at], ":")
}
