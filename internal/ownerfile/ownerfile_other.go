//go:build !windows

package ownerfile

import (
	"io/fs"
	"os"
)

// Open is [os.OpenFile].
func Open(name string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, mode)
}
