//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
)

// TestHelpTerminal: on a terminal of 80 columns, no line of help is wider than the terminal.
func TestHelpTerminal(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "sscli")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"get", "--help"}, {"import", "--help"}, {"help", "output"}} {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "TERM=dumb", "GORACE=atexit_sleep_ms=0")
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		buf := make([]byte, 4096)
		for err == nil { // until the program closes its side
			var n int
			n, err = terminal.Read(buf)
			text.Write(buf[:n])
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, text.String())
		}
		terminal.Close()
		if strings.Count(text.String(), "\n") < 10 {
			t.Errorf("%v: no help: %s", args, text.String())
		}
		for line := range strings.Lines(text.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\r\n")); n > 80 {
				t.Errorf("%v: a line has %d columns: %s", args, n, line)
			}
		}
	}
}
