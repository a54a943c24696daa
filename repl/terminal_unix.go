//go:build unix

package repl

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/sscli/sscli/internal/wait"
)

// Bracketed paste: the terminal marks the beginning and the end of a paste.
const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
)

func keyboardOf(in *os.File) io.Reader { return in }

func screenWriter(out *os.File) io.Writer { return out }

// watchTerminal reports changes of the terminal's size until stop is called.
func watchTerminal() (changes <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	return signals, func() {
		signal.Stop(signals)
		close(signals)
	}
}

// suspend stops the process group, as Ctrl-Z does when the terminal is not in raw mode. The
// caller holds t.mu.
func (t *Terminal) suspend() {
	t.screen.leave(t.prompt, t.line.Runes(), "")
	t.screen.write([]byte(pasteOff))
	if err := t.restore(); err != nil {
		return
	}
	wait.Stopped(syscall.SIGTSTP)
	_ = t.raw() // after an error, keys arrive line by line
	t.screen.write([]byte(pasteOn))
}
