package files

import (
	"errors"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// OpenPrivate is like [os.OpenFile]. If mode grants nothing to group and others, OpenPrivate creates the file with an
// access control list that allows only the user and the system, and inherits nothing from the
// directory. An existing file keeps its list.
func OpenPrivate(name string, flag int, mode fs.FileMode) (*os.File, error) {
	if flag&os.O_CREATE == 0 || mode&0o077 != 0 {
		return os.OpenFile(name, flag, mode)
	}
	created := createPrivate(name)
	if created != nil && flag&os.O_EXCL != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: created}
	}
	// Omit O_CREATE: a file that os.OpenFile creates inherits the access control list of its
	// directory.
	f, err := os.OpenFile(name, flag&^(os.O_CREATE|os.O_EXCL), mode)
	if created != nil && errors.Is(err, fs.ErrNotExist) {
		err = &fs.PathError{Op: "open", Path: name, Err: created} // why the file does not exist
	}
	return f, err
}

// createPrivate creates an empty file with its access control list in one step.
func createPrivate(name string) error {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return err
	}
	list, err := windows.SecurityDescriptorFromString("D:P(A;;FA;;;SY)(A;;FA;;;" + user.User.Sid.String() + ")")
	if err != nil {
		return err
	}
	security := windows.SecurityAttributes{SecurityDescriptor: list}
	security.Length = uint32(unsafe.Sizeof(security))
	h, err := windows.CreateFile(path, windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		&security, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return err
	}
	return windows.CloseHandle(h)
}
