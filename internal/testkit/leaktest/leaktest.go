// Package leaktest finds goroutines that tests left behind.
package leaktest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Main runs the tests of a package, and fails if a goroutine is left that one of the functions started. See [Goroutines].
func Main(m *testing.M, functions ...string) {
	code := m.Run()
	if left := Goroutines(functions...); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// Goroutines returns the stacks of the goroutines that were started by functions whose names, after the module's path,
// begin so. It gives a goroutine that has called Done on its WaitGroup time to end.
func Goroutines(functions ...string) string {
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		var left []string
		for s := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(s, "created by github.com/sscli/sscli/"+f) }) {
				left = append(left, s)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return strings.Join(left, "\n\n")
		}
	}
}
