package files

import (
	"os"
	"slices"
	"sync"
)

// Again returns a function that calls read each time, so that it notices when one of the files was replaced. If one
// of them is not a regular file, such as the pipe of <(command) in bash, its content comes only once: then the
// function calls read once, and returns the same result each time. Empty names are ignored.
func Again[T any](read func() (T, error), names ...string) func() (T, error) {
	if slices.ContainsFunc(names, ComesOnce) {
		return sync.OnceValues(read)
	}
	return read
}

// ComesOnce reports whether a file exists that is not a regular file, such as a pipe.
func ComesOnce(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular()
}
