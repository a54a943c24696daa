package repl

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/format"
)

func openHistory(t testing.TB, path string) *History {
	t.Helper()
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func add(t testing.TB, h *History, entries ...string) {
	t.Helper()
	for _, e := range entries {
		if err := h.Add(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "history")
	first, second := openHistory(t, path), openHistory(t, path)
	add(t, first, "get a", "get a", " \t", "", "set a 'x\ny\\'", "\xff\x00")
	add(t, second, "get b")
	add(t, first, "get a")
	want := []string{"get a", "set a 'x\ny\\'", "\xff\x00", "get b", "get a"}
	if diff := cmp.Diff(want, openHistory(t, path).entries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHistoryFile opens a file with a line written by hand, an incomplete line, and permissions that are too
// wide.
func TestHistoryFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(path, []byte("get {a}\\b\nset a \"\\\\n\"\nget cut"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := openHistory(t, path)
	if diff := cmp.Diff([]string{`get {a}\b`, `set a "\n"`}, h.entries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	add(t, h, "get new")
	if diff := cmp.Diff([]string{`get {a}\b`, `set a "\n"`, "get cut", "get new"}, openHistory(t, path).entries); diff != "" {
		t.Errorf("after Add (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestHistoryIsCutDown opens a file with one line too many.
func TestHistoryIsCutDown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var text strings.Builder
	for i := range 2*maxHistory + 1 {
		fmt.Fprintf(&text, "get %d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h := openHistory(t, path)
	if len(h.entries) != maxHistory || h.entries[0] != fmt.Sprintf("get %d", maxHistory+1) {
		t.Errorf("%d entries from %q on", len(h.entries), h.entries[0])
	}
	add(t, h, "last")
	left, err := os.ReadFile(path)
	if err != nil || strings.Count(string(left), "\n") != maxHistory+1 || !strings.HasSuffix(string(left), "\nlast\n") {
		t.Errorf("the file has %d lines, %v", strings.Count(string(left), "\n"), err)
	}
	if len(h.entries) != maxHistory || h.entries[maxHistory-1] != "last" {
		t.Errorf("%d entries up to %q", len(h.entries), h.entries[len(h.entries)-1])
	}
}

func TestHistoryUnusable(t *testing.T) {
	h, err := OpenHistory(t.TempDir())
	if err == nil {
		t.Error("a directory is taken for a history")
	}
	add(t, h, "get a")
	if len(h.entries) != 1 {
		t.Error("without a file there is no history at all")
	}
}

// FuzzHistory checks that an entry is one line of the file and reads back unchanged.
func FuzzHistory(f *testing.F) {
	f.Add("set a \"\\x00\"\r\n'\xff")
	f.Fuzz(func(t *testing.T, entry string) {
		line := format.Escape(entry)
		if strings.ContainsAny(line, "\r\n") {
			t.Errorf("%q is more than a line: %q", entry, line)
		}
		if got := decodeEntry(line); got != entry {
			t.Errorf("%q came back as %q", entry, got)
		}
	})
}
