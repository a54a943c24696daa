package ownerfile

import (
	"errors"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Open is like [os.OpenFile]. If mode gives no permission to group and others, a file that Open creates gets an access
// list with the user and the system, which has every right anyway, and inherits nothing from its
// directory. A file that exists keeps its list.
func Open(name string, flag int, mode fs.FileMode) (*os.File, error) {
	if flag&os.O_CREATE != 0 && mode&0o077 == 0 {
		err := create(name)
		switch {
		case err == nil:
			flag &^= os.O_EXCL
		case !errors.Is(err, windows.ERROR_FILE_EXISTS): // including a device, which os.OpenFile may open
			if flag&os.O_EXCL != 0 {
				return nil, &fs.PathError{Op: "open", Path: name, Err: err}
			}
		}
	}
	return os.OpenFile(name, flag, mode)
}

// create creates an empty file that has its access list from the first moment.
func create(name string) error {
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
