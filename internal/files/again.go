package files

import (
	"os"
	"sync"
)

// Again returns a function that calls read each time, so that it notices when one of the files was replaced. If one
// of them is not a regular file, such as the pipe of <(command) in bash, its content comes only once: then the
// function calls read once, and returns the same result each time. Empty names are ignored.
func Again[T any](read func() (T, error), names ...string) func() (T, error) {
	for _, name := range names {
		if info, err := os.Stat(name); name != "" && err == nil && !info.Mode().IsRegular() {
			return sync.OnceValues(read)
		}
	}
	return read
}
