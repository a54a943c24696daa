package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// move renames a file, and replaces any file that already has the new name. Windows refuses to
// replace a read-only file.
func move(from, to string) error {
	return RetryBusy(func() error {
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

// CopyAccess copies the access control list of one file to another.
func CopyAccess(from, to string) error {
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
	// SetNamedSecurityInfo would also add the entries that the file inherits from its directory.
	return errors.Join(windows.SetKernelObjectSecurity(h, windows.DACL_SECURITY_INFORMATION, sd), windows.CloseHandle(h))
}
