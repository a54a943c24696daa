package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// Standard returns standard output and standard error.
func Standard() (stdout, stderr *os.File) { return os.Stdout, os.Stderr }

// InputClosed reports whether standard input was closed when the process started.
func InputClosed() bool {
	kind, err := windows.GetFileType(windows.Handle(os.Stdin.Fd()))
	return err != nil && kind == windows.FILE_TYPE_UNKNOWN
}

// brokenPipes are the errors of a write to a pipe whose reader is gone.
func brokenPipes() []error { return []error{windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA} }
