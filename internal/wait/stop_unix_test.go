//go:build unix

package wait_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/wait"
)

// TestForContinue: a parent in another group of the session could continue the process.
func TestForContinue(t *testing.T) {
	if os.Getenv("TEST_FOR_CONTINUE") != "" {
		fmt.Println("wait", wait.ForContinue())
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		attr syscall.SysProcAttr
		long bool
	}{
		{"a job of a shell", syscall.SysProcAttr{Setpgid: true}, true},
		{"a session of its own", syscall.SysProcAttr{Setsid: true}, false},
		{"the group of its parent", syscall.SysProcAttr{}, false},
	} {
		cmd := exec.Command(self, "-test.run", "^TestForContinue$")
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), "TEST_FOR_CONTINUE=1"), &test.attr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(string(out), "wait "), "\n")
		if d, err := time.ParseDuration(text); err != nil || (d > time.Second) != test.long {
			t.Errorf("%s: %q, %v", test.name, out, err)
		}
	}
}
