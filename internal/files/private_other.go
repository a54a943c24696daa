//go:build !windows

package files

import (
	"io/fs"
	"os"
)

// OpenPrivate is [os.OpenFile].
func OpenPrivate(name string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, mode)
}
