package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
)

var transferKeys = flag.Int("transfer-keys", 20_000, "how many keys TestExportIntoImport moves, see scripts/long.sh")

// TestExportIntoImport moves keys and values of random bytes from one store into another, through a pipe. The stores
// are then equal, and ten times as many keys need hardly more memory: about 30 bytes a key, for import.
func TestExportIntoImport(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	few, many := *transferKeys/10, *transferKeys
	before := exportIntoImport(t, program, few)
	for name, peak := range exportIntoImport(t, program, many) {
		t.Logf("%s: %.1f MB for %d keys, %.1f MB for %d", name, before[name], few, peak, many)
		// The values of 20000 keys are 16 MB, and their JSON is 22 MB.
		if peak > before[name]+8 {
			t.Errorf("%s takes %.1f MB for %d keys and %.1f MB for %d", name, before[name], few, peak, many)
		}
	}
}

// exportIntoImport moves the given number of keys, and returns the peak memory of each command in MB.
func exportIntoImport(t *testing.T, program string, keys int) map[string]float64 {
	t.Helper()
	rnd := rand.New(rand.NewPCG(7, uint64(keys)))
	from, to := emulator.Start(t, emulator.Options{Variants: emulator.Variants{ScanGlobBytes: true}}), emulator.Start(t)
	for n := range keys {
		apptest.Put(t, from, fmt.Sprintf("%s/%d", apptest.RandomBytes(rnd, 1, 20), n), apptest.RandomBytes(rnd, 0, 1600))
	}
	command := func(store *emulator.Server, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env, cmd.Stderr = []string{"HOME=" + t.TempDir(), "SSCLI_URL=" + store.URL()}, t.Output()
		return cmd
	}
	exporting, importing := command(from, "export", "-q"), command(to, "import", "-", "-q")
	lines, err := exporting.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	input, err := importing.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	result := filepath.Join(t.TempDir(), "result")
	if importing.Stdout, err = os.Create(result); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{exporting, importing} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	// Memory is measured while the commands cannot end yet: export has more to write than a pipe holds, and import has
	// not seen the end of its input.
	peaks := make(map[string]float64)
	for in, n := bufio.NewReader(lines), 0; n < keys; n++ {
		if n == keys*9/10 {
			peaks["export"] = peakMemory(t, exporting.Process.Pid)
		}
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatalf("export: line %d: %v", n+1, err)
		}
		if _, err := input.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := exporting.Wait(); err != nil {
		t.Fatalf("export: %v", err)
	}
	await.State(t, to, func(s emulator.State) bool { return s.Keys == keys })
	peaks["import"] = peakMemory(t, importing.Process.Pid)
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := importing.Wait(); err != nil {
		t.Fatalf("import: %v", err)
	}
	if out, err := os.ReadFile(result); err != nil || string(out) != fmt.Sprintf("%d\t0\t0\t0\t0\t0\n", keys) {
		t.Errorf("import: %v: %q", err, out)
	}
	moved, want := apptest.Contents(to), apptest.Contents(from)
	if len(moved) != len(want) {
		t.Errorf("%d keys were moved, want %d", len(moved), len(want))
	}
	for key, value := range want {
		if moved[key] != value {
			t.Fatalf("%q is %q, want %q", key, moved[key], value)
		}
	}
	return peaks
}

// peakMemory returns the peak memory of a process so far, in MB.
func peakMemory(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if peak == nil {
		t.Fatalf("no VmHWM in %s", text)
	}
	kB, err := strconv.Atoi(string(peak[1]))
	if err != nil {
		t.Fatal(err)
	}
	return float64(kB) / 1024
}
