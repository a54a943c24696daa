//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

// scriptFullListener relies on how Linux handles a full accept queue.
func scriptFullListener(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("full-listener: want the condition [linux]")
}
