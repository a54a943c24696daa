package files

import (
	"os"
	"path"
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

// InputName returns "-" for a path of standard input, such as /dev/stdin, and name otherwise. Where - is read as
// standard input, such a path must be too: of a closed one, /dev/stdin is empty.
func InputName(name string) string {
	switch path.Clean(name) {
	case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/thread-self/fd/0":
		return "-"
	}
	return name
}
