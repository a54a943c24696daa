package process

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// startBackground starts this program with a role of TestMain.
func startBackground(t *testing.T, role, life string, stdout *bytes.Buffer) *Background {
	t.Helper()
	t.Setenv("PROCESS_TEST_ROLE", role)
	t.Setenv("PROCESS_TEST_LIFE", life)
	b, err := StartBackground(BackgroundOptions{Args: []string{os.Args[0]}, Stdout: stdout, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBackgroundExitCode(t *testing.T) {
	b := startBackground(t, "exit 3", "", new(bytes.Buffer))
	if code, err := b.Wait(); code != 3 || err != nil {
		t.Errorf("%d, %v, want 3", code, err)
	}
	b.Stop() // the command has already ended
}

// TestBackgroundOutput: the output is complete once the command has ended, and a process that the command left behind
// ends with it.
func TestBackgroundOutput(t *testing.T) {
	addr, up, ended := lives(t, 1)
	var stdout bytes.Buffer
	b := startBackground(t, "leave", addr, &stdout)
	<-up
	if code, err := b.Wait(); code != 4 || err != nil || stdout.String() != "left" {
		t.Errorf("%d, %v, %q, want 4 and left", code, err, &stdout)
	}
	ended()
}

// TestBackgroundStop: Stop ends the command and its descendants.
func TestBackgroundStop(t *testing.T) {
	addr, up, ended := lives(t, 2)
	b := startBackground(t, "tree", addr, new(bytes.Buffer))
	<-up
	b.Stop()
	if code, err := b.Wait(); code != codeKilled || err != nil {
		t.Errorf("%d, %v, want %d", code, err, codeKilled)
	}
	ended()
}

// TestBackgroundParentKilled: when sscli is killed, its background command is killed too.
func TestBackgroundParentKilled(t *testing.T) {
	addr, up, ended := lives(t, 2)
	parent := exec.Command(os.Args[0])
	parent.Env = environ("background", addr)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	<-up
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // the parent was killed
	ended()
}

// background is an sscli that runs a background command until it ends.
func background() {
	_ = os.Setenv("PROCESS_TEST_ROLE", "tree")
	b, err := StartBackground(BackgroundOptions{Args: []string{os.Args[0]}, Stdout: os.Stdout, Stderr: os.Stderr})
	if err == nil {
		_, err = b.Wait()
	}
	if err != nil {
		os.Exit(97)
	}
}
