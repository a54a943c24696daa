//go:build !windows

package atomicfile

import "os"

// Retry calls do once: on this system another process that has the file open does not keep us from
// opening or replacing it.
func Retry(do func() error) error { return do() }

// move renames a file, which may replace another.
func move(from, to string) error { return os.Rename(from, to) }

// copyAccess does nothing: the mode bits are all that a new file needs.
func copyAccess(_, _ string) error { return nil }
