package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sscli/sscli/emulator"
)

// TestFirstProcess: as the first process of a container, each command that waits exits after a signal with 128 plus the
// signal's number.
func TestFirstProcess(t *testing.T) {
	source := filepath.Join(t.TempDir(), "keys.jsonl")
	if err := os.WriteFile(source, []byte(`{"op":"get","key":"k","found":true,"value":"v"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"watch k", "lock hold mine", "lock run mine -- sleep 1000", "apply --every 1m " + source, "ping", "batch -",
		"gateway --listen 127.0.0.1:0", "serve --attach --standby", "lock trace mine",
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			t.Run(line+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				testFirstProcess(t, line, sig)
			})
		}
	}
}

func testFirstProcess(t *testing.T, line string, sig syscall.Signal) {
	s := emulator.Start(t, emulator.Options{})
	cmd := &exec.Cmd{
		Path: testProgram(t), Args: append([]string{"sscli", "-u", s.URL()}, strings.Fields(line)...),
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID},
		Env:         append(os.Environ(), "GORACE=atexit_sleep_ms=0"),
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		t.Skip("only root may create a PID namespace")
	} else if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(line, "batch") {
		if _, err := stdin.Write([]byte("set k v\n")); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	begun := func(st emulator.State) bool {
		return st.Requests > 0 && (!strings.HasPrefix(line, "lock h") && !strings.HasPrefix(line, "lock r") || st.Keys > 0)
	}
	if strings.HasPrefix(line, "gateway") || strings.HasPrefix(line, "serve") {
		begun = func(st emulator.State) bool { return st.Clients > 0 }
	}
	if err := s.Await(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
	if err := <-ended; cmd.ProcessState.ExitCode() != 128+int(sig) {
		t.Errorf("%v, want exit code %d\n%s", err, 128+int(sig), &stderr)
	}
	if _, held := s.Get("mine"); held {
		t.Error("the lock is still held")
	}
}

// TestOrphans: sscli reaps orphans when it is the first process of a container.
func TestOrphans(t *testing.T) {
	const script = `(sh -c 'exit 0' & ) ; (setsid sh -c 'exit 0' & )
until [ "$(ps -eo ppid,stat | awk '$1 == 1 && $2 ~ /^Z/' | wc -l)" = 0 ]; do sleep 0.01; done; exit 3`
	for _, tool := range []string{"unshare", "setsid", "ps", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	for _, args := range [][]string{{"serve", "--"}, {"lock", "run", "mine", "--embedded", "--"}} {
		cmd := &exec.Cmd{
			Path:        testProgram(t),
			Args:        append(append([]string{"sscli"}, args...), "unshare", "--mount-proc", "sh", "-c", script),
			SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS},
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root may create a PID namespace")
		}
		if cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// TestReadOnly: lock run works without a temporary directory and without /proc. If it has no place for its file, it
// says so before it acquires the lock.
func TestReadOnly(t *testing.T) {
	const readOnly = "mount -t tmpfs -o ro none "
	for mount, want := range map[string]int{"true": 3, readOnly + "/dev/shm": 125} {
		s := emulator.Start(t, emulator.Options{})
		script := readOnly + "/proc && cp \"$0\" /run/sscli && " + readOnly + "/tmp && " + mount + ` && cd / && exec /run/sscli -u "$1" lock run mine -- sh -c 'cat "$SSCLI_FENCE_FILE" && exit 3'`
		cmd := &exec.Cmd{
			Path: "/usr/bin/unshare", Args: []string{"unshare", "--mount", "sh", "-c", "mount -t tmpfs none /run && " + script, testProgram(t), s.URL()},
			Env: []string{"PATH=/run:" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"},
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "permission denied") {
			t.Skip("only root may mount: ", err)
		}
		if cmd.ProcessState.ExitCode() != want {
			t.Errorf("%s: %v, want exit code %d\n%s", mount, err, want, out)
		}
		if state := s.State(); want == 125 && (state.Requests > 0 || !strings.Contains(string(out), "TMPDIR")) {
			t.Errorf("%s: %d requests\n%s", mount, state.Requests, out)
		}
	}
}

// TestFull: lock run takes the next temporary directory if one does not exist or is full. If all are full, it says so
// before it acquires the lock.
func TestFull(t *testing.T) {
	const full = `full() { mkdir -p $1; mount -t tmpfs -o size=4k none $1; head -c 9000 /dev/zero >$1/fill 2>/dev/null; true; }; `
	for script, want := range map[string]string{
		"export TMPDIR=/nosuch":                   "/tmp/",
		"full /run/full; export TMPDIR=/run/full": "/tmp/",
		"full /tmp": "/dev/shm/",
		"full /tmp; full /dev/shm; export TMPDIR=":   "",
		"full /tmp; full /dev/shm; TMPDIR=/tmp/full": "",
	} {
		s := emulator.Start(t, emulator.Options{})
		cmd := &exec.Cmd{
			Path: "/usr/bin/unshare", Args: []string{"unshare", "--mount", "sh", "-c", full + `mount -t tmpfs none /run && cp "$0" /run/sscli && ` + script +
				` && cd / && exec /run/sscli -u "$1" lock run mine -- sh -c 'cat "$SSCLI_FENCE_FILE" && echo "$SSCLI_FENCE_FILE"'`, testProgram(t), s.URL()},
			Env: []string{"PATH=/run:" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"},
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "permission denied") {
			t.Skip("only root may mount: ", err)
		}
		code, state := cmd.ProcessState.ExitCode(), s.State()
		switch {
		case want != "" && (code != 0 || !strings.Contains(string(out), ":StateStore\n"+want)):
			t.Errorf("%s: %v, want a file in %s\n%s", script, err, want, out)
		case want == "" && (code != 125 || state.Requests > 0 || !strings.Contains(string(out), "TMPDIR")):
			t.Errorf("%s: %v after %d requests, want exit code 125\n%s", script, err, state.Requests, out)
		}
	}
}

// TestFirstToken: if the first token cannot be written, the command is not started, and the lock is released.
func TestFirstToken(t *testing.T) {
	s := emulator.Start(t, emulator.Options{})
	if _, err := s.Set("mine", "other"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := &exec.Cmd{
		Path: testProgram(t), Args: []string{"sscli", "-u", s.URL(), "lock", "run", "mine", "--", "echo", "started"},
		Env: append(os.Environ(), "TMPDIR="+dir, "GORACE=atexit_sleep_ms=0"),
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), func(st emulator.State) bool { return st.Requests > 0 }); err != nil {
		t.Error(err)
	}
	made, err := filepath.Glob(filepath.Join(dir, "sscli-lock-*"))
	if err != nil || len(made) != 1 {
		t.Errorf("%q, %v, want one directory", made, err)
	}
	for _, name := range made {
		if err := os.RemoveAll(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Delete("mine"); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 125 || strings.Contains(out.String(), "started") {
		t.Errorf("%v, want exit code 125\n%s", err, &out)
	}
	if e, held := s.Get("mine"); held {
		t.Errorf("the lock is still held: %+v", e)
	}
}
