package files

import (
	"os"
	"path/filepath"
	"runtime"
)

// TempDir returns a directory for temporary files in which this process can create a directory and
// write a file: [os.TempDir], /tmp or, in a container without one, with a root that is read-only or with a
// full disk, XDG_RUNTIME_DIR or /dev/shm. If there is none, it returns os.TempDir, and writing there says why.
func TempDir() string {
	dirs := []string{os.TempDir(), "/tmp", os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"}
	if runtime.GOOS == "windows" {
		dirs = dirs[:1]
	}
	for i, dir := range dirs {
		if dir != "" && (i == 0 || dir != dirs[0]) && canWrite(dir) {
			return dir
		}
	}
	return dirs[0]
}

// canWrite reports whether this process can create a directory in dir, and write a file in that directory.
func canWrite(dir string) bool {
	probe, err := os.MkdirTemp(dir, "sscli-")
	if err != nil {
		return false
	}
	err = os.WriteFile(filepath.Join(probe, "probe"), []byte("probe"), 0o600) // a full disk may have room for an empty file
	return os.RemoveAll(probe) == nil && err == nil
}
