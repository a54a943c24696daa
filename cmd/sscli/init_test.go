package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestInit bounds the work that packages do before main, because each start pays for it. Our own packages may set
// variables that the compiler cannot initialize statically, but must not allocate. Dependencies must stay below a bound
// of allocations and bytes, which are the same in each run. Time varies, so it is only checked for our own packages,
// and the best of several runs counts.
func TestInit(t *testing.T) {
	t.Parallel()
	const (
		maxClock  = 0.05 // ms of wall-clock time: far above the cost of setting a variable
		maxAllocs = 100
		maxBytes  = 12 << 10             // unicode has the most
		yaml      = "go.yaml.in/yaml/v3" // has more, see docs/decisions.md
		maxOfYAML = 300
	)
	program := buildProgram(t)
	line := regexp.MustCompile(`^init (\S+) @.* ms, (\S+) ms clock, (\d+) bytes, (\d+) allocs$`)
	ours := regexp.MustCompile(`^(main|github\.com/sscli/sscli\S*)$`)
	bad := make(map[string]bool) // packages over a bound in the last run
	// On a busy machine some runs are too slow, but not all of them.
	const runs = 20
	for n := range runs {
		if len(bad) == 0 && n > 0 {
			return
		}
		clear(bad)
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
			clock, clockErr := strconv.ParseFloat(m[2], 64)
			size, sizeErr := strconv.Atoi(m[3])
			allocs, allocsErr := strconv.Atoi(m[4])
			if err := errors.Join(clockErr, sizeErr, allocsErr); err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			large := allocs > maxAllocs || size > maxBytes
			if m[1] == yaml {
				large = allocs > maxOfYAML
			}
			if ours.MatchString(m[1]) && (clock > maxClock || allocs > 0) || large {
				bad[m[1]] = true
				t.Logf("%s", l)
			}
		}
	}
	for name := range bad {
		t.Errorf("%s works at package level", name)
	}
}
