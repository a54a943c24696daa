package shell

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/repl"
)

// historyFile returns the name of the history file, or "" if the history is not saved.
func historyFile(env func(string) (string, bool)) string {
	if name, ok := env("SSCLI_HISTFILE"); ok {
		return name
	}
	if dir := config.StateDir(env); dir != "" {
		return filepath.Join(dir, "history")
	}
	return ""
}

// maxKept is the maximum length, in bytes, of a word in the history and of a remembered key.
const maxKept = 256

// keep reports whether to keep an entry in the history. It returns false for an entry that begins with
// a space, or has a word that is long or may contain a password.
func keep(text string) bool {
	if strings.HasPrefix(text, " ") {
		return false
	}
	r := repl.NewReader(strings.NewReader(text))
	r.Joins = true
	for {
		line, err := r.Next()
		if _, bad := errors.AsType[*repl.LineError](err); err != nil && !bad {
			return true
		}
		words := line.Words
		if len(words) == 0 { // the line has an error, but may still have a password
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

func hasPassword(word string) bool {
	_, rest, ok := strings.Cut(word, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(authority, "@")
	return at >= 0 && strings.Contains(authority[:at], ":")
}
