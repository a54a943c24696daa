package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
)

// TestUnreceivable reads a key to whose reads no reply comes, as if the value were larger than a packet. A
// longer timeout would not help, and no command that reads a key advises one.
func TestUnreceivable(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for _, key := range []string{"big", "small"} {
		if _, err := store.Set(key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{DropReply: r.Key() == "big"} })
	for _, line := range []string{"get big", "get big small", "dataset show big", "scan b* --long", "export", "lock list big small", "get big -f value"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sscli", append(strings.Fields(line), "-u", store.URL(), "-t", "3s")...)
			cmd.Dir = t.TempDir()
			var said strings.Builder
			cmd.Stderr = &said
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != 124 || !strings.Contains(said.String(), "larger than any client can receive") ||
				strings.Contains(said.String(), "--timeout") {
				t.Errorf("exit code %d, want 124 and the size as reason:\n%s", code, said.String())
			}
		})
	}
}
