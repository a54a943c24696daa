//go:build !unix

package repl

import (
	"io"
	"os"

	"github.com/chzyer/readline"
)

// readline's translation knows no bracketed paste.
const pasteOn, pasteOff = "", ""

// A console of Windows says keys and not bytes; readline translates both ways.
func keyboard(*os.File) io.Reader { return readline.Stdin }

func screenWriter(*os.File) io.Writer { return readline.Stdout }

// watchTerminal says nothing: the size is asked for with each entry.
func watchTerminal() (changes <-chan os.Signal, stop func()) {
	never := make(chan os.Signal)
	return never, func() { close(never) }
}

// suspend does nothing: there is no job control.
func (t *Terminal) suspend() {}
