//go:build !unix

package repl

import (
	"io"
	"os"

	"github.com/chzyer/readline"
)

// Bracketed paste is off: readline's translation of the console does not support it.
const pasteOn, pasteOff = "", ""

// The Windows console sends key events instead of bytes; readline translates them, and also
// the escape sequences that we write.
func keyboard(*os.File) io.Reader { return readline.Stdin }

func screenWriter(*os.File) io.Writer { return readline.Stdout }

// watchTerminal reports no changes. The size is read again whenever a line is drawn.
func watchTerminal() (changes <-chan os.Signal, stop func()) {
	never := make(chan os.Signal)
	return never, func() { close(never) }
}

// suspend does nothing: Windows has no job control.
func (t *Terminal) suspend() {}
