//go:build unix

package disk

import (
	"errors"
	"os"
)

// syncDir has the disk keep the name of a new file.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
