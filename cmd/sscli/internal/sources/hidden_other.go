//go:build !windows

package sources

import "io/fs"

// isHidden returns false. On Unix, only the name of a file can mark it as hidden, with a dot at the
// beginning.
func isHidden(fs.FileInfo) bool { return false }
