package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableColor makes the console interpret control sequences, and reports whether it does. The shell
// that started sscli sets its own mode again when sscli has ended.
func enableColor(console *os.File) bool {
	h := windows.Handle(console.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	const interpret = windows.ENABLE_PROCESSED_OUTPUT | windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING
	return mode&interpret == interpret || windows.SetConsoleMode(h, mode|interpret) == nil
}
