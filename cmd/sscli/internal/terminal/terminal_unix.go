//go:build unix

package terminal

import "os"

// openTerminal opens the terminal that sscli was started from.
func openTerminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }
