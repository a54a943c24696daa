//go:build !windows

package sources

import "io/fs"

// isHidden returns false: only Windows has an attribute for hidden files.
func isHidden(fs.FileInfo) bool { return false }
