//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOwner: a file that root replaces keeps its owner and its group, and their permissions.
func TestOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may give a file away")
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(name, []byte("old"), 0o600), os.Chown(name, 12, 34), os.Chmod(name, 0o640)); err != nil {
		t.Skip(err) // root of a container may lack the permission
	}
	if err := Write(name, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t); got.Uid != 12 || got.Gid != 34 || info.Mode().Perm() != 0o640 {
		t.Errorf("owner %d, group %d, mode %v", got.Uid, got.Gid, info.Mode())
	}
}
