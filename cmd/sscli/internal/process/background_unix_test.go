//go:build unix

package process

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBackground(t *testing.T) {
	for script, want := range map[string]int{"echo out; echo err >&2": 0, "echo out; echo err >&2; exit 3": 3, "echo out; echo err >&2; kill -KILL $$": 137} {
		var stdout, stderr bytes.Buffer
		b, err := StartBackground(BackgroundOptions{Args: []string{"sh", "-c", script}, Stdout: &stdout, Stderr: &stderr})
		if err != nil {
			t.Fatal(err)
		}
		code, err := b.Wait()
		if code != want || err != nil || stdout.String() != "out\n" || stderr.String() != "err\n" {
			t.Errorf("%s: %d, %v, %q, %q", script, code, err, &stdout, &stderr)
		}
	}
}

func TestBackgroundEnvironment(t *testing.T) {
	t.Setenv("BACKGROUND", "inherited")
	for want, env := range map[string][]string{"inherited": nil, "given": Environ(map[string]string{"BACKGROUND": "given"})} {
		var stdout, stderr bytes.Buffer
		b, err := StartBackground(BackgroundOptions{Env: env, Args: []string{"sh", "-c", "echo $BACKGROUND"}, Stdout: &stdout, Stderr: &stderr})
		if err != nil {
			t.Fatal(err)
		}
		if code, err := b.Wait(); code != 0 || err != nil || stdout.String() != want+"\n" {
			t.Errorf("%s: %d, %v, %q, %q", want, code, err, &stdout, &stderr)
		}
	}
}

func TestBackgroundStartErrors(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	_, err := StartBackground(BackgroundOptions{Args: []string{"no-such-program-anywhere"}, Stdout: &stdout, Stderr: &stderr})
	if e, ok := errors.AsType[*StartError](err); !ok || e.Code != CodeNotFound {
		t.Errorf("%v, want a *StartError with code %d", err, CodeNotFound)
	}
	b, err := StartBackground(BackgroundOptions{Args: []string{program}, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Wait(); err == nil {
		t.Error("a file that is no program was run")
	}
}

// TestBackgroundStop: Stop ends the command and its descendants, even if both ignore TERM.
func TestBackgroundStop(t *testing.T) {
	for name, script := range map[string]string{
		"child": `exec 9>$LIFE; (echo up >&9; exec sleep 1000) & wait`,
		"deaf":  `exec 9>$LIFE; trap "" TERM; echo up >&9; while :; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			var stdout, stderr bytes.Buffer
			b, err := StartBackground(BackgroundOptions{Args: []string{"sh", "-c", strings.ReplaceAll(script, "$LIFE", l.path)}, Stdout: &stdout, Stderr: &stderr})
			if err != nil {
				t.Fatal(err)
			}
			l.line(t)
			b.Stop()
			l.end(t)
			if code, err := b.Wait(); code < 128 || err != nil {
				t.Errorf("%d, %v", code, err)
			}
		})
	}
}

// TestBackgroundGuardKilled: when its guard is killed, the command is killed too.
func TestBackgroundGuardKilled(t *testing.T) {
	l := newLife(t)
	var stdout, stderr bytes.Buffer
	b, err := StartBackground(BackgroundOptions{Args: []string{"sh", "-c", "exec 9>" + l.path + "; echo up >&9; exec sleep 1000"}, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	l.line(t)
	if err := b.guard.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Wait(); !errors.Is(err, ErrGuardDied) {
		t.Errorf("%v, want %v", err, ErrGuardDied)
	}
	l.end(t)
}

// TestBackgroundDaemonStays: a daemon that the command left behind, with the command's output open, delays Wait by
// outputDelay, and stays. No output of the command is lost.
func TestBackgroundDaemonStays(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid")
	}
	t.Parallel()
	l := newLife(t)
	there := filepath.Join(t.TempDir(), "there")
	if err := syscall.Mkfifo(there, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	b, err := StartBackground(BackgroundOptions{Args: []string{"sh", "-c", `exec 9>` + l.path + `; setsid sh -c 'echo $$ >&9; echo >` + there +
		`; exec sleep 1000' & read -r _ <` + there + `; echo out; echo err >&2`}, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(l.line(t))
	if err != nil {
		t.Fatal(err)
	}
	if code, err := b.Wait(); code != 0 || err != nil || stdout.String() != "out\n" || stderr.String() != "err\n" {
		t.Errorf("%d, %v, %q, %q", code, err, &stdout, &stderr)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon: %v", err)
	}
	l.end(t)
}

// backgroundForever is an sscli that starts a background command and waits for its end.
func backgroundForever() (int, error) {
	b, err := StartBackground(BackgroundOptions{Args: []string{"sh", "-c", os.Getenv("PROCESS_TEST_SCRIPT")}, Stdout: os.Stdout, Stderr: os.Stderr, Temp: os.Getenv("PROCESS_TEST_TEMP")})
	if err != nil {
		return 0, err
	}
	return b.Wait()
}

// TestBackgroundParentKilled: when sscli is killed, its background commands are killed and their directory is removed.
func TestBackgroundParentKilled(t *testing.T) {
	l := newLife(t)
	temp := filepath.Join(t.TempDir(), "secrets")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(temp, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), "PROCESS_TEST_ROLE=background", "PROCESS_TEST_TEMP="+temp,
		`PROCESS_TEST_SCRIPT=exec 9>`+l.path+`; trap "" TERM; (trap "" TERM; exec sleep 1000) & echo up >&9; wait`)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	l.line(t)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // the parent was killed
	l.end(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(temp); errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the directory is left")
		}
	}
}
