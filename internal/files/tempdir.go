package files

import "os"

// TempDir returns a directory for temporary files in which this process can create a directory:
// [os.TempDir] or, in a container without one or with a root that is read-only, XDG_RUNTIME_DIR or
// /dev/shm. If there is none, it returns os.TempDir, and creating a directory there says why.
func TempDir() string {
	for _, dir := range []string{os.TempDir(), os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"} {
		if dir == "" {
			continue
		}
		if probe, err := os.MkdirTemp(dir, "sscli-"); err == nil && os.Remove(probe) == nil {
			return dir
		}
	}
	return os.TempDir()
}
