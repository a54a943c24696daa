//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

// scriptFullListener needs Linux's way with a full queue.
func scriptFullListener(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("full-listener: want the condition [linux]")
}
