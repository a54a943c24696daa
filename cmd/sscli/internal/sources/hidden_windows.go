package sources

import (
	"io/fs"
	"syscall"
)

// isHidden reports whether a file or a directory has the hidden attribute, as do the files desktop.ini
// and Thumbs.db that Explorer writes.
func isHidden(info fs.FileInfo) bool {
	data, ok := info.Sys().(*syscall.Win32FileAttributeData)
	return ok && data.FileAttributes&syscall.FILE_ATTRIBUTE_HIDDEN != 0
}
