//go:build unix

package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestExposed: a file that others can only write to is told as well as one that they can read.
func TestExposed(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "users")
	for mode, want := range map[fs.FileMode]string{
		0o600: "", 0o640: "read", 0o604: "read", 0o620: "write", 0o602: "write", 0o622: "write", 0o666: "read and write",
	} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if got := Exposed(name); got != want {
			t.Errorf("mode %#o: %q, want %q", mode, got, want)
		}
	}
	if got := Exposed(name + "none"); got != "" {
		t.Errorf("no file: %q", got)
	}
}
