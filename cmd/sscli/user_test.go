//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/screentest"
)

// A user sits at a terminal in which sscli runs, types, and looks at the screen.
type user struct {
	t      *testing.T
	pty    *os.File
	cmd    *exec.Cmd
	screen *screentest.Screen
	prompt string
	read   chan error // how reading the terminal ended
}

// A seat describes the terminal and the program of a user.
type seat struct {
	args          []string
	env           []string
	width, height uint16
	prompt        string // "" = the server's prompt
	server        *emulator.Server
	bash          bool // run bash, which finds sscli, in place of sscli
}

func (s seat) start(t *testing.T) *user {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, prompt: s.prompt, read: make(chan error, 1)}
	if s.width == 0 {
		s.width, s.height = 80, 24
	}
	u.screen = screentest.New(int(s.width), int(s.height))
	u.cmd = exec.Command(self, s.args...)
	u.cmd.Args[0] = "sscli"
	home := t.TempDir()
	u.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm", "NO_COLOR=1", "GORACE=atexit_sleep_ms=0",
		"SSCLI_HISTFILE=" + filepath.Join(home, "history"),
	}, s.env...)
	if s.bash {
		if err := os.Symlink(self, filepath.Join(home, "sscli")); err != nil {
			t.Fatal(err)
		}
		bash, err := exec.LookPath("bash")
		if err != nil {
			t.Skip("no bash")
		}
		u.cmd.Path, u.cmd.Args = bash, []string{"bash", "--norc", "--noprofile", "--noediting", "-i"}
		u.cmd.Env = append(u.cmd.Env, "PS1=$ ", "HISTFILE=", "PATH="+home+":"+os.Getenv("PATH"))
	}
	if s.server != nil {
		u.cmd.Env = append(u.cmd.Env, "SSCLI_URL="+s.server.URL())
		if s.prompt == "" {
			u.prompt = s.server.Addr().String() + "> "
		}
	}
	u.pty = startOnTerminal(t, u.cmd, &pty.Winsize{Cols: s.width, Rows: s.height})
	go func() {
		_, err := io.Copy(u.screen, u.pty)
		u.read <- err
	}()
	t.Cleanup(func() {
		if u.cmd.ProcessState == nil {
			_ = u.cmd.Process.Kill()
			_ = u.cmd.Wait()
		}
		_ = u.pty.Close()
		if u.read != nil {
			<-u.read
		}
		if err := u.screen.Fault(); err != nil {
			t.Errorf("the screen: %v", err)
		}
	})
	return u
}

// sitDown starts a shell, and waits for its prompt.
func sitDown(t *testing.T, server *emulator.Server) *user {
	t.Helper()
	u := seat{server: server, env: []string{patient + "=yes"}}.start(t)
	u.ready()
	return u
}

func (u *user) types(keys string) {
	u.t.Helper()
	if _, err := u.pty.WriteString(keys); err != nil {
		u.t.Fatal(err)
	}
}

// await waits until holds is true for the text on the screen, without durations.
func (u *user) await(what string, holds func(text string) bool) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	defer cancel()
	if err := u.screen.Await(ctx, func(s *screentest.Screen) bool { return holds(timeless(s.String())) }); err != nil {
		column, row := u.screen.Cursor()
		u.t.Fatalf("waited in vain for %s; the cursor is at %d,%d of\n%s", what, column, row, u.screen)
	}
}

// The duration of a slow command, which any command may be on a busy machine, on a line of its own or after an exit code.
var tookLine, tookFact = regexp.MustCompile(`(?m)^\([\dhm.]+s\)(\n|\z)`), regexp.MustCompile(`(\(exit code \d+), [\dhm.]+s\)`)

// timeless returns the text of a screen without durations.
func timeless(text string) string {
	return tookFact.ReplaceAllString(tookLine.ReplaceAllString(text, ""), "$1)")
}

// text returns what is on the screen, without durations.
func (u *user) text() string { return timeless(u.screen.String()) }

// sees waits until the screen ends with a text.
func (u *user) sees(end string) {
	u.t.Helper()
	u.await(strconv.Quote(end)+" at the end", func(text string) bool { return strings.HasSuffix(text, strings.TrimRight(end, " ")) })
}

func (u *user) seesWithin(part string) {
	u.t.Helper()
	u.await(strconv.Quote(part), func(text string) bool { return strings.Contains(text, part) })
}

// ready waits until sscli waits for input.
func (u *user) ready() {
	u.t.Helper()
	u.await("a prompt", func(text string) bool {
		return (u.screen.Pasting() || strings.Contains(strings.Join(u.cmd.Env, " "), "TERM=dumb")) && lastLine(text) == strings.TrimRight(u.prompt, " ")
	})
}

// runs types a line and returns what it printed, without durations.
func (u *user) runs(line string) string {
	u.t.Helper()
	return strings.TrimSuffix(timeless(u.times(line)), "\n")
}

// times is like runs, with durations.
func (u *user) times(line string) string {
	u.t.Helper()
	u.types("\x0c") // clears the screen
	u.sees(u.prompt)
	u.await("a clear screen", func(text string) bool { return text == strings.TrimRight(u.prompt, " ") || dumb(u) })
	before := u.text()
	u.types(line + "\r")
	u.await("the end of "+line, func(text string) bool {
		return u.screen.Pasting() && lastLine(text) == strings.TrimRight(u.prompt, " ") && text != before
	})
	_, out, _ := strings.Cut(u.screen.String(), "\n")
	out, _ = strings.CutSuffix(out, strings.TrimRight(u.prompt, " "))
	return strings.TrimSuffix(out, "\n")
}

func dumb(u *user) bool { return strings.Contains(strings.Join(u.cmd.Env, " "), "TERM=dumb") }

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// leaves waits for sscli to end and returns the exit code.
func (u *user) leaves() int {
	u.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- u.cmd.Wait() }()
	select {
	case err := <-ended:
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			u.t.Fatal(err)
		}
	case <-time.After(time.Minute):
		u.t.Fatalf("sscli does not end\n%s", u.screen)
	}
	if u.read != nil {
		<-u.read // waits for the rest of the output
		u.read = nil
	}
	return u.cmd.ProcessState.ExitCode()
}

// resizes changes the size of the terminal, as a window manager would.
func (u *user) resizes(width, height int) {
	u.t.Helper()
	u.screen.Resize(width, height)
	if err := pty.Setsize(u.pty, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		u.t.Fatal(err)
	}
}

func listen(t *testing.T, addr string) *emulator.Server {
	t.Helper()
	s, err := emulator.New(emulator.Options{Listen: addr})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
