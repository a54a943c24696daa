package repl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sscli/sscli/format"
)

// maxHistory is how many entries a shell knows; the file is cut down to them when
// it has twice as many.
const maxHistory = 1000

// A History is what was entered before, in this shell and, by its file, in others.
// The file has an entry a line, with C escapes, so that an entry of several lines
// is one. Several shells may use one file: they append.
type History struct {
	path    string
	entries []string // oldest first
}

// OpenHistory reads the history of a file that need not exist; an empty path is one
// of this shell alone. The file is readable for its owner only, and so are the
// directories that are made for it. With an error the history is there too, but
// does not outlast the shell.
func OpenHistory(path string) (*History, error) {
	h := &History{}
	if path == "" {
		return h, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return h, fmt.Errorf("history: %w", err)
	}
	h.path = path
	err := h.locked(func(f *os.File) error {
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return errors.Join(err, fmt.Errorf("%s is no file", path))
		}
		text, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		lines := strings.SplitAfter(string(text), "\n")
		lines = lines[:len(lines)-1] // what has no line end was cut off
		if len(lines) > 2*maxHistory {
			lines = lines[len(lines)-maxHistory:]
			if err := replace(f, strings.Join(lines, "")); err != nil {
				return err
			}
		}
		for _, line := range lines[max(0, len(lines)-maxHistory):] {
			h.remember(decodeEntry(line[:len(line)-1]))
		}
		return nil
	})
	if err != nil {
		h.path = ""
		return h, fmt.Errorf("history: %w", err)
	}
	return h, nil
}

// replace writes text in place of what f holds, which is not larger.
func replace(f *os.File, text string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteString(text) // at the end, which is the beginning now
	return err
}

// locked runs with the file open and no other shell at it, where the system has
// such locks.
func (h *History) locked(do func(*os.File) error) (err error) {
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // which unlocks too
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return err
		}
	}
	if err := lockFile(f); err != nil {
		return err
	}
	return do(f)
}

// Add appends an entry, unless it is the last one already. The error is the file's.
func (h *History) Add(entry string) error {
	if !h.remember(entry) || h.path == "" {
		return nil
	}
	err := h.locked(func(f *os.File) error {
		_, err := f.WriteString(encodeEntry(entry) + "\n")
		return err
	})
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

func (h *History) remember(entry string) bool {
	if strings.TrimSpace(entry) == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return false
	}
	if len(h.entries) == maxHistory {
		h.entries = append(h.entries[:0], h.entries[1:]...)
	}
	h.entries = append(h.entries, entry)
	return true
}

func encodeEntry(entry string) string { return format.Escape(entry) }

// decodeEntry takes a line that somebody wrote by hand as it stands.
func decodeEntry(line string) string {
	if entry, err := format.Unescape(line); err == nil {
		return entry
	}
	return line
}
