package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// buildProgram builds sscli for a test that runs it under something that testscript
// knows nothing of.
func buildProgram(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("cannot build the program: ", err)
	}
	program := filepath.Join(t.TempDir(), "sscli.exe")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}
