//go:build unix

package repl

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Bracketed paste: the terminal says where a paste begins and ends.
const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
)

func keyboard(in *os.File) io.Reader { return in }

func screenWriter(out *os.File) io.Writer { return out }

// watchTerminal says when the terminal's size has changed.
func watchTerminal() (changes <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	return signals, func() {
		signal.Stop(signals)
		close(signals)
	}
}

// suspend stops the process group as Ctrl-Z would without an editor. The caller
// holds t.mu.
func (t *Terminal) suspend() {
	t.screen.leave(t.prompt, t.line, "")
	t.screen.write([]byte(pasteOff))
	if err := t.restore(); err != nil {
		return
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	// Nobody can go on with a process that has no shell, so that one is not stopped.
	if err := syscall.Kill(0, syscall.SIGTSTP); err == nil {
		select {
		case <-goesOn:
		case <-time.After(500 * time.Millisecond):
		}
	}
	// If it cannot be made raw again, the keys come line by line.
	_ = t.raw()
	t.screen.write([]byte(pasteOn))
}
