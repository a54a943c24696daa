//go:build unix

package process

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

func TestExitCodes(t *testing.T) {
	for script, want := range map[string]int{
		"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137, `test "$X" = y || exit 9`: 0,
	} {
		code, err := NewRunner().Run(Command{Args: []string{"sh", "-c", script}, Env: append(os.Environ(), "X=y")})
		if code != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", script, code, err, want)
		}
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"no-such-program-anywhere": CodeNotFound, filepath.Join(dir, "missing"): CodeNotFound,
		file: CodeNotExecutable, dir: CodeNotExecutable, program: CodeNotExecutable,
		filepath.Join(dir, "nul\x00"): CodeSetup,
	} {
		_, err := NewRunner().Run(Command{Args: []string{name}})
		if e, ok := errors.AsType[*StartError](err); !ok || e.Code != want || e.Name != name {
			t.Errorf("%q: %v, want a *StartError with code %d", name, err, want)
		}
	}
	_, err := NewRunner().Run(Command{Args: []string{file}})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v has lost its cause", err)
	}
}

// TestMain also runs the helper programs of the tests, by PROCESS_TEST_ROLE. They are not shell scripts because a shell
// can lose a signal that arrives just before it waits.
func TestMain(m *testing.M) {
	if GuardMain() {
		return
	}
	// Otherwise a process takes a second to exit with -race.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	role := os.Getenv("PROCESS_TEST_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	code, err := play(role)
	if err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		code = 99
	}
	os.Exit(code)
}

// play runs a helper program and returns its exit code. The grandchild writes a line when it is ready for the signal,
// and then exits with 7. The child does the same, and exits with the code of the grandchild.
func play(role string) (int, error) {
	switch role {
	case "wrapper":
		return wrap()
	case "slow guard":
		guardSlowly()
		return 0, nil
	case "late guard":
		guardLate()
		return 0, nil
	case "background":
		return backgroundForever()
	case "descriptors":
		return useDescriptors()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	var grandchild *exec.Cmd
	if role == "child" {
		grandchild = exec.Command(os.Args[0])
		grandchild.Env = append(os.Environ(), "PROCESS_TEST_ROLE=grandchild")
		grandchild.Stderr = os.Stderr
		if err := grandchild.Start(); err != nil {
			return 0, err
		}
	}
	f, err := os.OpenFile(os.Getenv("PROCESS_TEST_READY"), os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintln(f, role); err != nil {
		return 0, err
	}
	<-signals
	if grandchild == nil {
		return 7, nil
	}
	err = grandchild.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return 0, err
	}
	return grandchild.ProcessState.ExitCode(), nil
}

// TestSignal sends a signal to the test process. Both the command and its child must get it.
func TestSignal(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(ready, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type result struct {
		code int
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		code, err := NewRunner().Run(Command{
			Args: []string{os.Args[0]},
			Env:  append(os.Environ(), "PROCESS_TEST_ROLE=child", "PROCESS_TEST_READY="+ready, "GORACE=atexit_sleep_ms=0"),
		})
		ended <- result{code, err}
	}()
	lines := bufio.NewScanner(f)
	for range 2 {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.code != 7 || got.err != nil {
		t.Errorf("ended with %d, %v, want 7", got.code, got.err)
	}
}
