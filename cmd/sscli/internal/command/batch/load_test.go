package batch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

// TestBytesSurviveSavingAndLoading: arbitrary bytes in keys and values survive the round trip: batch lines into the
// store, the list of keys as batch lines, the values as JSON, and loading into another store.
func TestBytesSurviveSavingAndLoading(t *testing.T) {
	t.Parallel()
	const keys = 200
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"\x00", "\n", "\r\n", "\t", " ", `"`, `'`, `\`, "#", "-", "{", "*", "é", "\u2028", "\U0001f600", "\ud7ff", "\xff", "\xc3", "\x1b[2J", "a", "0"}
	text := func(least int) string {
		var b strings.Builder
		for range least + rnd.IntN(8) {
			b.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		return b.String()
	}
	want := make(map[string]string)
	var lines strings.Builder
	for len(want) < keys {
		key, value := text(1), text(0)
		if _, twice := want[key]; !twice {
			want[key] = value
			fmt.Fprintf(&lines, "set %s %s\n", format.Word(key), format.Word(value))
		}
	}
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// run runs a command and returns its standard output.
	run := func(store *emulator.Server, args ...string) string {
		t.Helper()
		out, err := os.Create(filepath.Join(dir, "stdout"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		a := newApp(strings.NewReader(""), out, os.Stderr)
		if err := cmdline.Run(t.Context(), a, append([]string{"-q", "-u", store.URL()}, args...)); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		printed, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(printed)
	}
	first, second := emulator.Start(t, emulator.Options{ScanPage: 7, Variants: emulator.Variants{ScanGlobBytes: true}}), emulator.Start(t)
	run(first, "batch", file("lines", lines.String()), "--inflight", "16")
	var reads strings.Builder
	for key := range strings.Lines(run(first, "scan", "-o", "raw")) {
		// Double quotes in a batch have the same escapes as the output of scan.
		fmt.Fprintf(&reads, "get \"%s\"\n", strings.ReplaceAll(strings.TrimSuffix(key, "\n"), `"`, `\"`))
	}
	saved := run(first, "batch", file("reads", reads.String()), "--inflight", "16", "-o", "json")
	run(second, "batch", "--load", file("saved", saved), "--inflight", "16")
	if n := len(second.Keys()); n != keys {
		t.Errorf("%d keys were loaded, want %d", n, keys)
	}
	for key, value := range want {
		if got, ok := second.Get(key); !ok || string(got.Value) != value {
			t.Errorf("%q: got %q, %v; want %q", key, got.Value, ok, value)
		}
	}
}
