package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestManyArguments passes as many keys as `scan | xargs sscli del` does in one call.
func TestManyArguments(t *testing.T) {
	for _, n := range []int{13_000, 100_000} {
		args := []string{"sscli", "--embedded", "get"}
		for i := range n {
			args = append(args, strconv.Itoa(i))
		}
		var stdout, stderr bytes.Buffer
		cmd := &exec.Cmd{Path: testProgram(t), Args: args, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Stdout: &stdout, Stderr: &stderr}
		err := cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 1 || strings.Count(stdout.String(), "\n") != n {
			t.Errorf("%d arguments: exit code %d, %v, %d lines, %.300s", n, code, err, strings.Count(stdout.String(), "\n"), &stderr)
		}
	}
}
