// Package full distinguishes tests by where they run. `go test ./...` and scripts/check.sh run every test
// that a change can break within minutes, and skip a test whose program is not installed. With
// SSCLI_CHECK=full, as in CI, slow tests run too, and a missing program fails its test. Tests that require
// something slow to compile have the build tag full.
package full

import (
	"os"
	"os/exec"
	"testing"
)

// Check reports whether SSCLI_CHECK is full.
func Check() bool { return os.Getenv("SSCLI_CHECK") == "full" }

// Slow skips a slow test unless SSCLI_CHECK is full.
func Slow(t testing.TB) {
	t.Helper()
	if !Check() {
		t.Skip("slow: runs with SSCLI_CHECK=full")
	}
}

// Program skips a test if the named program is not installed, or fails it if SSCLI_CHECK is full.
func Program(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		Missing(t, err)
	}
}

// Missing skips a test for lack of a program, or fails it if SSCLI_CHECK is full.
func Missing(t testing.TB, reason any) {
	t.Helper()
	if Check() {
		t.Fatal(reason)
	}
	t.Skip(reason)
}
