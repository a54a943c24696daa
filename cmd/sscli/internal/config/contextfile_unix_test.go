//go:build unix

package config

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestEditNotRegular: a file that is not a regular one, such as /dev/null, has no contexts and is not replaced.
func TestEditNotRegular(t *testing.T) {
	if text, err := read("/dev/null"); err != nil || len(text) != 0 {
		t.Errorf("%q, %v", text, err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Edit(t.Context(), pipe, func(*Contexts) error {
		t.Error("the file was read")
		return nil
	})
	if err == nil || err.Error() != pipe+": not a regular file" {
		t.Errorf("got %v", err)
	}
}
