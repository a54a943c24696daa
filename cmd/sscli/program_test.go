package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// buildProgram builds sscli for a test that runs it under another program, which testscript cannot do.
func buildProgram(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("cannot build the program: ", err)
	}
	program, err := builtProgram()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// builtProgram builds sscli once for all tests, in the directory that testscript removes at the end.
var builtProgram = sync.OnceValues(func() (string, error) {
	inPath, err := exec.LookPath("sscli")
	if err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(filepath.Dir(inPath)), "sscli-built.exe")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return program, nil
})

// testProgram returns the path of this test program, which acts as sscli if argv[0] says so.
func testProgram(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
