package files

import (
	"errors"
	"time"

	"golang.org/x/sys/windows"
)

// retryFor is how long Retry waits for another process to close the file. sscli reads and replaces
// files within milliseconds, but a virus scanner may keep a file open longer.
const retryFor = 2 * time.Second

// RetryBusy calls do, and repeats the call for up to two seconds while it fails because another process
// has the file open or is replacing it.
func RetryBusy(do func() error) error {
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		err := do()
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
			errors.Is(err, windows.ERROR_DELETE_PENDING)
		if !busy || time.Since(begin) > retryFor {
			return err
		}
	}
}
