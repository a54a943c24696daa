package sscli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLanguages runs the examples for other languages, with the libraries that a registry gives for them. Where there is
// no Testcontainers for Python, a stand-in runs podman.
func TestLanguages(t *testing.T) {
	if missing != nil {
		t.Skipf("requires podman and containers that run: %v", missing)
	}
	standIn, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, prepare, test string }{
		{"node", "npm install --silent --no-audit --no-fund", "npm test"},
		{"python", "/usr/bin/python3 -c 'import paho.mqtt.client'", "/usr/bin/python3 -c 'import testcontainers' 2>/dev/null || export PYTHONPATH=" + standIn + "; /usr/bin/python3 -m unittest test_store"},
		{"java", "mvn -q -B test-compile", "mvn -q -B test"},
		{"rust", "cargo fetch", "cargo test"},
		{"dotnet", "dotnet restore", "dotnet test"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), tt.name)
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("../examples/testing", tt.name))); err != nil {
				t.Fatal(err)
			}
			run := func(command string) ([]byte, error) {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "SSCLI_IMAGE="+image)
				return cmd.CombinedOutput()
			}
			if out, err := run(tt.prepare); err != nil {
				t.Skipf("the tools or libraries for %s are not here: %v: %.300s", tt.name, err, out)
			}
			if out, err := run(tt.test); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
