//go:build !unix

package terminal

import "os"

// openTerminal opens the console, which goes by this name on Windows.
func openTerminal() (*os.File, error) { return os.OpenFile("CONIN$", os.O_RDWR, 0) }
