//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// TestPluginExitCode: the exit code of a monitoring plugin is 0 to 3, whatever happens.
func TestPluginExitCode(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	if _, err := store.Set("here", "1"); err != nil {
		t.Fatal(err)
	}
	start := func(url string, stdout *os.File, args ...string) (*exec.Cmd, *bytes.Buffer) {
		t.Helper()
		cmd := exec.Command(testProgram(t), append([]string{"check", "-o", "nagios"}, args...)...)
		cmd.Args[0] = "sscli"
		cmd.Env = append(os.Environ(), "SSCLI_URL="+url)
		var out bytes.Buffer
		if cmd.Stdout = &out; stdout != nil {
			cmd.Stdout = stdout
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &out
	}
	ended := func(what string, cmd *exec.Cmd, want int) {
		t.Helper()
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != want {
			t.Errorf("%s: exit code %d, want %d: %v", what, cmd.ProcessState.ExitCode(), want, err)
		}
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		cmd, out := start("mqtt://"+silent.Addr().String(), nil, "here")
		c, err := silent.Accept() // it is connected, so it has caught signals
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		ended(sig.String(), cmd, 3)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), "SSCLI UNKNOWN - interrupted") {
			t.Errorf("%s: %q", sig, out)
		}
	}
	for _, tt := range []struct {
		key  string
		code int
	}{{"here", 3}, {"missing", 2}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		cmd, _ := start(store.URL(), w, tt.key)
		ended("no reader, "+tt.key, cmd, tt.code)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"here", "--sat-file", "/nosuch/file"}, {"here", "--tls", "--ca-file", "/nosuch/file"}, {"here", "--username", "u", "--password-file", "/nosuch/file"}} {
		cmd, out := start(store.URL(), nil, args...)
		ended(strings.Join(args, " "), cmd, 3)
		if !strings.HasPrefix(out.String(), "SSCLI UNKNOWN - ") || !strings.Contains(out.String(), "/nosuch/file") {
			t.Errorf("%q: %q", args, out)
		}
	}
}

// TestCheckReload: SIGHUP makes check --listen read its file again. What it saw of keys stays, and a broken file
// changes nothing and is reported.
func TestCheckReload(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	put := func(value string) {
		t.Helper()
		if _, err := store.Set("k", value); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "checks.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("1")
	write("checks:\n- {key: k}\n- {key: gone, missing: true}\n")
	cmd := exec.Command(testProgram(t), "check", "-f", file, "--listen", "127.0.0.1:0", "-o", "raw")
	cmd.Args[0] = "sscli"
	cmd.Env = append(os.Environ(), "SSCLI_URL="+store.URL())
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(stderr)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, said)
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	await := func(wants ...string) {
		t.Helper()
		for {
			resp, err := http.Get(strings.TrimSpace(url))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			all := true
			for _, want := range wants {
				pattern, not := strings.CutPrefix(want, "!")
				all = all && regexp.MustCompile("(?m)^"+pattern+"$").Match(body) != not
			}
			if all {
				return
			}
			select {
			case <-t.Context().Done():
				t.Fatalf("%s", body)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	hup := func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	await("sscli_up.* 1", `sscli_key_present\{.*"k"\} 1`, "sscli_check_state.*gone.* 0")
	put("2")
	await(`sscli_key_changes_total\{.*"k"\} 1`)
	write("checks:\n- {key: k, max: 1}\n- {key: new}\n")
	hup()
	await(`sscli_check_state\{.*"k"\} 2`, "sscli_check_state.*new.* 2", `sscli_key_changes_total\{.*"k"\} 1`, "!sscli_check_state.*gone.*")
	write("checks:\n- {key: k, max: one}\n")
	hup()
	if line, err := said.ReadString('\n'); err != nil || !strings.Contains(line, "the checks stay as they were: ") || !strings.Contains(line, "checks.yaml:2") {
		t.Errorf("%q, %v", line, err)
	}
	put("1")
	await(`sscli_check_state\{.*"k"\} 0`, `sscli_key_changes_total\{.*"k"\} 2`)
}
