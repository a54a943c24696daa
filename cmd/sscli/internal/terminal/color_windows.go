package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableColor makes the console interpret control sequences, and reports whether it succeeded. It does
// not restore the console's mode: the shell that started sscli sets its own mode when sscli ends.
func enableColor(console *os.File) bool {
	h := windows.Handle(console.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	const interpret = windows.ENABLE_PROCESSED_OUTPUT | windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING
	return mode&interpret == interpret || windows.SetConsoleMode(h, mode|interpret) == nil
}
