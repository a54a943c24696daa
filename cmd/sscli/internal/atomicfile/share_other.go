//go:build !windows

package atomicfile

import "os"

// move renames a file, and replaces any file that already has the new name.
func move(from, to string) error { return os.Rename(from, to) }

// copyAccess does nothing: create has already set the mode bits, and a new file needs nothing else.
func copyAccess(_, _ string) error { return nil }
