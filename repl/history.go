package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// maxHistory is the maximum number of entries in memory. A file with more than twice as many entries
// is shortened to the last maxHistory entries.
const maxHistory = 1000

// A History holds the entries of this shell and, if it has a file, of earlier shells. The file has
// one entry per line. C escapes make an entry of several lines fit on one line of the file. Several
// shells can share a file: each appends to it. A History must not be used by several goroutines at
// once.
type History struct {
	path    string   // empty = not saved
	entries []string // oldest first
}

// OpenHistory reads the history file at path. It creates a missing file with mode 0600 and
// missing directories with mode 0700, and restricts an existing file to its owner. If path is
// empty, the History has no file. If OpenHistory returns an error, it also returns a usable
// History, whose entries are not saved.
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
			return errors.Join(err, fmt.Errorf("%s is not a regular file", path))
		}
		text, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		lines := strings.SplitAfter(string(text), "\n")
		lines = lines[:len(lines)-1] // the text after the last line end is empty or incomplete
		if len(lines) > 2*maxHistory {
			lines = lines[len(lines)-maxHistory:]
			if err := f.Truncate(0); err != nil {
				return err
			}
			if _, err := f.WriteAt([]byte(strings.Join(lines, "")), 0); err != nil {
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

// locked opens the history file, locks it against other shells, and calls do. The lock lets do write at
// the end without O_APPEND, with which Windows would refuse to truncate the file.
func (h *History) locked(do func(*os.File) error) (err error) {
	f, err := files.OpenPrivate(h.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // unlocks too
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return err
		}
	}
	if err := files.WaitLock(context.Background(), f); err != nil {
		return err
	}
	return do(f)
}

// Add appends an entry, unless it is blank or equal to the last one. On an error, the entry
// is missing from the file but still in memory.
func (h *History) Add(entry string) error {
	if !h.remember(entry) || h.path == "" {
		return nil
	}
	err := h.locked(func(f *os.File) error {
		line := format.Escape(entry) + "\n"
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, max(0, size-1)); err == nil && last[0] != '\n' {
			line = "\n" + line // an incomplete line must not become part of the entry
		}
		_, err = f.WriteString(line)
		return err
	})
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// remember adds an entry in memory, unless it is blank or equal to the last one. It reports whether
// it added the entry.
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

// decodeEntry decodes a line of the file. An invalid line, such as one that a user typed
// into the file, is returned unchanged.
func decodeEntry(line string) string {
	if entry, err := format.Unescape(line); err == nil {
		return entry
	}
	return line
}
