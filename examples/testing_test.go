package examples

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/testkit/full"
)

// TestTesting runs the tests of an application in Python: of a lease that expires, and of every fault of the control
// port, with paho-mqtt and redis-py.
func TestTesting(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // has Debian's packages
	full.Program(t, python)
	for file, tt := range map[string]struct{ library, ran string }{
		"lease_test.py":  {"paho.mqtt.client", "Ran 3 tests"},
		"faults_test.py": {"paho.mqtt.client, redis.client", "Ran 14 tests"},
	} {
		t.Run(file, func(t *testing.T) {
			if err := exec.Command(python, "-c", "import "+tt.library).Run(); err != nil {
				full.Missing(t, "python3-paho-mqtt or python3-redis is not installed")
			}
			out, err := exec.Command(build(t), "serve", "--control", "127.0.0.1:0", "--redis", "127.0.0.1:0", "--", python, "testing/"+file).CombinedOutput()
			if err != nil || !strings.Contains(string(out), tt.ran) || !strings.HasSuffix(string(out), "OK\n") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
