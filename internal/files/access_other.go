//go:build !windows

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// move renames a file, and replaces any file that already has the new name.
func move(from, to string) error { return os.Rename(from, to) }

// CopyAccess gives a file the permissions of another file, without which the umask would apply to them, and its owner
// and group as far as this process may.
func CopyAccess(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	given := false
	if old, ok := info.Sys().(*syscall.Stat_t); ok {
		given = os.Chown(to, int(old.Uid), int(old.Gid)) == nil
		if !given {
			_ = os.Chown(to, -1, int(old.Gid)) // an owner may choose among the groups they are in
		}
	}
	err = os.Chmod(to, info.Mode().Perm()) // after the change of the group, so that no other group may read it meanwhile
	if given && errors.Is(err, fs.ErrPermission) {
		err = nil // a process may have the right to change owners, but not the mode of files of others
	}
	return err
}
