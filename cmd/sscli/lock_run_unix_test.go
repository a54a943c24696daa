//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// A lockTerminal is a program on its own terminal, with what the terminal shows.
type lockTerminal struct {
	t     *testing.T
	cmd   *exec.Cmd
	pty   *os.File
	shown string
	more  chan string // closed at the end
}

// onTerminal runs a program with sscli on its PATH, and a store.
func onTerminal(t *testing.T, args ...string) *lockTerminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "sscli")); err != nil {
		t.Fatal(err)
	}
	store := emulator.Start(t)
	cmd := exec.Command(args[0], args[1:]...)
	if args[0] == "sscli" {
		cmd = exec.Command(filepath.Join(dir, "sscli"), args[1:]...)
	}
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SSCLI_URL="+store.URL(), "TERM=dumb", "PS1=$ ", "HISTFILE=",
		"GORACE=atexit_sleep_ms=0")
	f := startOnTerminal(t, cmd, nil)
	p := &lockTerminal{t: t, cmd: cmd, pty: f, more: make(chan string)}
	go func() {
		defer close(p.more)
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			p.more <- string(buf[:n])
			if err != nil { // an error means that the last program has closed its side
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the session leader: its end hangs up the terminal
		for range p.more {
		}
		_ = cmd.Wait()
		_ = f.Close()
	})
	return p
}

// expect waits until the terminal shows text that it did not show before.
func (p *lockTerminal) expect(text string) {
	p.t.Helper()
	deadline := time.After(time.Minute)
	for {
		if _, after, ok := strings.Cut(p.shown, text); ok {
			p.shown = after
			return
		}
		select {
		case more, ok := <-p.more:
			p.shown += more
			if !ok {
				p.t.Fatalf("the terminal shows %q and is closed, want %q", p.shown, text)
			}
		case <-deadline:
			p.t.Fatalf("the terminal shows %q, want %q", p.shown, text)
		}
	}
}

func (p *lockTerminal) typed(keys string) {
	p.t.Helper()
	if _, err := p.pty.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the program to end and returns its exit code.
func (p *lockTerminal) exit() int {
	p.t.Helper()
	for range p.more { // drain the output: the program may block on writing it
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func TestLockRunReadsTerminal(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, "sscli", "lock", "run", "x", "--", "sh", "-c", `echo up; read -r line; echo "read $line"; exit 3`)
	p.expect("up")
	p.typed("hello\n")
	p.expect("read hello")
	if code := p.exit(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
}

// TestLockRunInterruptedAtTerminal: Ctrl-C reaches the command, exactly once.
func TestLockRunInterruptedAtTerminal(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, "sscli", "lock", "run", "x", "--", "sh", "-c", `trap 'echo caught' INT; echo up; read -r line; read -r line; exit 4`)
	p.expect("up")
	p.typed("\x03")
	p.expect("caught")
	p.typed("one\ntwo\n")
	if code := p.exit(); code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
}

// TestLockRunInShell: Ctrl-Z, fg and bg do what they do with any command.
func TestLockRunInShell(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	p := onTerminal(t, "bash", "--norc", "--noprofile", "-i")
	p.typed(`sscli lock run x --ttl 1m -- sh -c 'echo u""p; read -r line; echo "read $line"; read -r line; echo "read $line"'` + "\n")
	p.expect("up\r\n")
	p.typed("\x1a")
	p.expect("is not renewed while sscli is stopped")
	p.expect("Stopped")
	p.expect("$ ")
	p.typed("fg\n")
	p.expect("sscli lock run")
	p.typed("hello\n")
	p.expect("read hello")
	p.typed("\x1a")
	p.expect("Stopped")
	p.expect("$ ")
	// In the background the command may not read from the terminal.
	p.typed("bg\n")
	p.expect("is not renewed while sscli is stopped")
	p.typed("until jobs -s | grep -q .; do :; done; fg\n")
	p.typed("again\n")
	p.expect("read again")
	p.typed("echo \"code $?\"\n")
	p.expect("code 0\r\n")
	// The terminal belongs to the shell again.
	p.typed("read -r line; echo \"shell read $line\"\n")
	p.typed("third\n")
	p.expect("shell read third")
}
