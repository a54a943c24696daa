//go:build !windows

package files

import "os"

// move renames a file, and replaces any file that already has the new name.
func move(from, to string) error { return os.Rename(from, to) }

// CopyAccess gives a file the permissions of another file. Without it, the umask would apply to them.
func CopyAccess(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return os.Chmod(to, info.Mode().Perm())
}
