//go:build unix

package top

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/trace"
	"github.com/sscli/sscli/internal/testkit/screentest"
)

// TestPanic: after a panic in any goroutine, the terminal is restored before the reason is printed.
func TestPanic(t *testing.T) {
	const variable = "SSCLI_TEST_PANIC"
	if where := os.Getenv(variable); where != "" {
		panicOnTerminal(t, where)
		return
	}
	for where, want := range map[string]string{"main": "panic: runtime error", "other": "internal error: runtime error"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPanic$")
		cmd.Env = append(os.Environ(), variable+"="+where)
		f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
		if err != nil {
			t.Fatal(err)
		}
		screen := screentest.New(80, 24)
		// Reading the terminal returns an error when the program ends.
		_, _ = io.Copy(screen, f)
		_ = cmd.Wait() // the program panicked
		f.Close()
		if !screen.Plain() || !screen.Escapes() || !strings.Contains(screen.String(), want) {
			t.Errorf("%s: the screen is restored: %v; it shows\n%s", where, screen.Plain(), screen)
		}
	}
}

// panicOnTerminal runs a top that panics in the given place.
func panicOnTerminal(t *testing.T, where string) {
	a := &app.App{Stdout: &terminal.Output{File: os.Stdout}, Stderr: &terminal.Output{File: os.Stderr}, Env: os.LookupEnv}
	named, m := make(map[string]bool), (*model)(nil)
	if where == "other" { // watching panics because there is no session
		named["key"], m = true, newModel("")
	}
	l := newMonitor(nil, m, trace.NewKeyLog(), named, 0)
	t.Fatal(l.run(context.Background(), a))
}
