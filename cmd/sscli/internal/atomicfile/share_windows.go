package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// retryFor is how long Retry waits for another process to close the file. sscli reads and replaces
// files within milliseconds, but a virus scanner may keep one open longer.
const retryFor = 2 * time.Second

// Retry calls do, and repeats it for at most two seconds if another process has the file open or
// is replacing it.
func Retry(do func() error) error {
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		err := do()
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
			errors.Is(err, windows.ERROR_DELETE_PENDING)
		if !busy || time.Since(begin) > retryFor {
			return err
		}
	}
}

// move renames a file, which may replace another. Windows refuses to replace a read-only file.
func move(from, to string) error {
	return Retry(func() error {
		err := os.Rename(from, to)
		if err == nil {
			return nil
		}
		if info, statErr := os.Stat(to); statErr == nil && info.Mode()&0o200 == 0 {
			return fmt.Errorf("the file is read-only: %w", fs.ErrPermission)
		}
		return err
	})
}

// copyAccess copies the access control list of one file to another.
func copyAccess(from, to string) error {
	sd, err := windows.GetNamedSecurityInfo(from, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return err
	}
	path, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	h, err := windows.CreateFile(path, windows.WRITE_DAC, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return err
	}
	// SetNamedSecurityInfo would add the entries that the file inherits from its directory.
	return errors.Join(windows.SetKernelObjectSecurity(h, windows.DACL_SECURITY_INFORMATION, sd), windows.CloseHandle(h))
}
