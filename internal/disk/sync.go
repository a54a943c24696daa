package disk

import (
	"errors"
	"os"
	"runtime"
)

// syncDir syncs a directory, so that the name of a new file in it survives a crash. Windows does not
// require this.
func syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
