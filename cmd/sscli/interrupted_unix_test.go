//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// TestInterruptedInput: a signal ends each command that reads standard input, even in the middle of a line, with one
// message at most.
func TestInterruptedInput(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"-", "batch -", "batch - --inflight 4", "batch - --keep-going", "batch --check -", "batch --load -", "batch --load --check -",
		"import -", "import - --dry-run", "import - --keep-going", "apply -", "diff -", "set k -", "get --keys-from -", "watch --keys-from -",
		"dataset load k -", "dataset diff k -", "check -f -", "policy check -", "policy suggest -", "lock trace build --from -",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, strings.Fields(line)...)
			cmd.Args[0] = "sscli"
			cmd.Env = append(os.Environ(), "SSCLI_URL="+emulator.Start(t).URL(), "GORACE=atexit_sleep_ms=0")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := stdin.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil { // more than a pipe holds: it reads
				t.Fatalf("%v: %s", err, &stderr)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v", cmd.ProcessState)
			}
			if n := strings.Count(stderr.String(), "interrupted by SIGTERM"); n > 1 { // 0 if the signal came before it was caught
				t.Errorf("it says %d times that it was interrupted: %.300s", n, stderr.String())
			}
		})
	}
}

// TestInterruptedPolicy: a signal ends each command of policy, whatever it does with a rule of 3,000 users, topics and keys.
func TestInterruptedPolicy(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := func(format string) string {
		var all []string
		for i := range 3000 {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ", ")
	}
	policy := fmt.Sprintf(`[{"principals": {"usernames": [%s]}, "brokerResources": [{"method": "Subscribe", "topics": [%s]}], "stateStoreResources": [{"method": "Read", "keys": [%s]}]}]`,
		list(`"user%d"`), list(`"t/%d/+"`), list(`"a%d/*"`))
	dir := t.TempDir()
	for name, text := range map[string]string{"old": policy, "new": strings.ReplaceAll(policy, "/*", "/x*"), "did": strings.ReplaceAll(list("--user u%d --client-id c read a%[1]d/x"), ", ", "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"check old", "who old a1/x", "can old --user u --read x", "diff old new", "table old", "table old --markdown", "test --write old", "suggest did", "suggest did --generalise", "suggest --unused old --trace did",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, append([]string{"policy"}, strings.Fields(line)...)...)
			cmd.Args[0], cmd.Dir, cmd.WaitDelay = "sscli", dir, time.Minute
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			_ = cmd.Run()
			// The others may have ended before, but must not be killed.
			long := slices.Contains([]string{"diff", "table"}, strings.Fields(line)[0])
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() != (status.Signal() == syscall.SIGTERM) || long && !status.Signaled() {
				t.Errorf("it ended with %v", cmd.ProcessState)
			}
		})
	}
}
