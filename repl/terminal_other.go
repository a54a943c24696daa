//go:build !unix

package repl

import (
	"io"
	"os"

	"github.com/chzyer/readline"
)

// pasteOn and pasteOff are empty, as bracketed paste is off: readline's translation of the console does not support it.
const pasteOn, pasteOff = "", ""

// keyboardOf returns readline's input, which translates the key events of the Windows console
// to bytes.
func keyboardOf(*os.File) io.Reader { return readline.Stdin }

// screenWriter returns readline's output, which translates escape sequences for the Windows
// console.
func screenWriter(*os.File) io.Writer { return readline.Stdout }

// watchTerminal reports no changes: screen reads the size whenever it draws.
func watchTerminal() (changes <-chan os.Signal, stop func()) {
	never := make(chan os.Signal)
	return never, func() { close(never) }
}

// suspend does nothing: Windows has no job control.
func (t *Terminal) suspend() {}
