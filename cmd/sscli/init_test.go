package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestInit lets no package of ours work before main: that is paid at every start.
// A package may set variables that the compiler cannot lay out, as long as that
// takes no memory and no time to speak of.
func TestInit(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	const most = 0.05 // ms, by the wall clock: far above what setting a variable takes
	program := filepath.Join(t.TempDir(), "sscli.exe")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	line := regexp.MustCompile(`^init (main|github\.com/sscli/sscli\S*) @.* ms, (\S+) ms clock, \d+ bytes, (\d+) allocs$`)
	bad := make(map[string]int)
	// The clock may be unlucky once, not three times.
	const runs = 3
	for range runs {
		cmd := exec.Command(program, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stderr.String(), "\ninit ") {
			t.Fatalf("no trace of inits: %s", stderr.String())
		}
		for l := range strings.Lines(stderr.String()) {
			m := line.FindStringSubmatch(strings.TrimSpace(l))
			if m == nil {
				continue
			}
			clock, err := strconv.ParseFloat(m[2], 64)
			if err != nil || clock > most || m[3] != "0" {
				bad[m[1]]++
				t.Logf("%s", l)
			}
		}
	}
	for name, n := range bad {
		if n == runs {
			t.Errorf("%s works at package level", name)
		}
	}
}
