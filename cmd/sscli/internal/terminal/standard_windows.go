package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// Standard returns standard output and standard error.
func Standard() (stdout, stderr *os.File) { return os.Stdout, os.Stderr }

// Closed reports which of the standard streams were closed when the process started.
func Closed() (stdin, stdout, stderr bool) {
	closed := func(f *os.File) bool {
		kind, err := windows.GetFileType(windows.Handle(f.Fd()))
		return err != nil && kind == windows.FILE_TYPE_UNKNOWN
	}
	return closed(os.Stdin), closed(os.Stdout), closed(os.Stderr)
}

// brokenPipes are the errors of a write to a pipe whose reader is gone.
func brokenPipes() []error { return []error{windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA} }
