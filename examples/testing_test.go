package examples

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/testkit/full"
)

// TestLease runs the test of an application in Python, which moves the store's clock through the control port.
func TestLease(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // has Debian's packages
	full.Program(t, python)
	if err := exec.Command(python, "-c", "import paho.mqtt.client").Run(); err != nil {
		full.Missing(t, "python3-paho-mqtt is not installed")
	}
	out, err := exec.Command(build(t), "serve", "--control", "127.0.0.1:0", "--", python, "testing/lease_test.py").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Ran 3 tests") || !strings.HasSuffix(string(out), "OK\n") {
		t.Errorf("%v: %s", err, out)
	}
}
