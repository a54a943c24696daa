//go:build unix

package disk

import (
	"errors"
	"os"
)

// syncDir syncs a directory, so that the name of a new file in it survives a crash.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
