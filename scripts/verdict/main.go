// Command verdict reads what `go test -json` writes and prints what is worth
// reading: a line for each package, and the output of the tests that did not pass.
//
//	go test -json ./... | go run ./scripts/verdict COUNTS SKIPS
//
// It writes "PASSED FAILED SKIPPED" to the file COUNTS and a line for each skipped
// test, with its reason, to the file SKIPS. The exit code is 1 if something failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// An event is what `go doc test2json` describes.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "verdict: want two operands, COUNTS and SKIPS")
		os.Exit(2)
	}
	v := verdict{w: os.Stdout, output: make(map[string]*strings.Builder), failedIn: make(map[string]bool)}
	err := v.read(os.Stdin)
	if err == nil {
		err = v.save(os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "verdict:", err)
		os.Exit(2)
	}
	if v.failed > 0 {
		os.Exit(1)
	}
}

type verdict struct {
	w                       io.Writer
	passed, failed, skipped int
	skips                   []string
	output                  map[string]*strings.Builder // of what has not ended, by package and test
	failedIn                map[string]bool             // packages with a test that failed
}

func (v *verdict) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				v.event(e)
			} else {
				fmt.Fprint(v.w, line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (v *verdict) event(e event) {
	id := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "=== ") {
			return
		}
		if v.output[id] == nil {
			v.output[id] = new(strings.Builder)
		}
		v.output[id].WriteString(e.Output)
	case "build-output":
		fmt.Fprint(v.w, e.Output)
	case "pass", "fail", "skip":
		said := ""
		if b := v.output[id]; b != nil {
			said = b.String()
			delete(v.output, id)
		}
		if e.Test == "" {
			v.endPackage(e, said)
		} else {
			v.endTest(e, said)
		}
	}
}

func (v *verdict) endTest(e event, said string) {
	switch e.Action {
	case "pass":
		v.passed++
		// Where the process died, test2json takes the trace for what the last test
		// said, even if that had passed.
		if _, trace, died := strings.Cut(said, "panic: "); died {
			fmt.Fprint(v.w, "panic: ", trace)
		}
	case "fail":
		v.failed++
		v.failedIn[e.Package] = true
		fmt.Fprint(v.w, said)
	case "skip":
		v.skipped++
		v.skips = append(v.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(said)))
	}
}

func (v *verdict) endPackage(e event, said string) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(v.w, "ok    %6.1fs  %s\n", e.Elapsed, e.Package)
	case "fail":
		if !v.failedIn[e.Package] {
			v.failed++ // it was not built, or died between two tests
		}
		v.unfinished(e.Package)
		fmt.Fprint(v.w, said)
		fmt.Fprintf(v.w, "FAIL  %6.1fs  %s\n", e.Elapsed, e.Package)
	}
}

// unfinished prints what tests said that never ended: one of them was under way
// when the package died, and the reason stands with it.
func (v *verdict) unfinished(pkg string) {
	for _, id := range slices.Sorted(maps.Keys(v.output)) {
		test, ok := strings.CutPrefix(id, pkg+" ")
		if !ok || test == "" {
			continue
		}
		fmt.Fprintf(v.w, "%s did not end:\n%s", test, v.output[id])
		delete(v.output, id)
	}
}

// reason is what a skipped test said, in one line.
func reason(said string) string {
	var words []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--- SKIP") {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}

func (v *verdict) save(counts, skips string) error {
	text := fmt.Sprintln(v.passed, v.failed, v.skipped)
	if err := os.WriteFile(counts, []byte(text), 0o600); err != nil {
		return err
	}
	list := ""
	for _, s := range v.skips {
		list += s + "\n"
	}
	return os.WriteFile(skips, []byte(list), 0o600)
}
