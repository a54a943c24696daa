package diff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/diff"
	"github.com/sscli/sscli/cmd/sscli/internal/command/export"
	"github.com/sscli/sscli/cmd/sscli/internal/command/importcmd"
	"github.com/sscli/sscli/emulator"
)

var run = apptest.Runner(app.Command{Name: "diff", New: diff.New}, app.Command{Name: "export", New: export.New}, app.Command{Name: "import", New: importcmd.New})

// TestDiffFindsAnEditScript changes a store at random. diff must find exactly these changes, both between a file and
// the store, and between the old and the new store.
func TestDiffFindsAnEditScript(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		allKeys := emulator.Variants{ScanGlobBytes: true} // SCAN also lists keys that are not text
		before, after := emulator.Start(t, emulator.Options{ScanPage: 7, Variants: allKeys}), emulator.Start(t, emulator.Options{ScanPage: 5, Variants: allKeys})
		value := func() string {
			if rnd.IntN(2) == 0 {
				return apptest.RandomBytes(rnd, 0, 20)
			}
			return fmt.Sprintf(`{"a":%d.0,"list":[%d,{"b":%d}],"odd name":"é"}`, rnd.IntN(3), rnd.IntN(3), rnd.IntN(3))
		}
		for range 150 {
			key, value := apptest.RandomBytes(rnd, 1, 12), value()
			apptest.Put(t, before, key, value)
			apptest.Put(t, after, key, value)
		}
		file := filepath.Join(t.TempDir(), "file")
		if code, _, stderr := run(t, "", "export", "-u", before.URL(), "-f", file); code != 0 {
			t.Fatalf("export: exit code %d: %s", code, stderr)
		}
		for range rnd.IntN(60) {
			keys := after.Keys()
			switch key := keys[rnd.IntN(len(keys))]; rnd.IntN(3) {
			case 0:
				apptest.Put(t, after, apptest.RandomBytes(rnd, 1, 12), value())
			case 1:
				apptest.Put(t, after, key, value())
			case 2:
				apptest.Remove(after, key)
			}
		}
		old, now := apptest.Contents(before), apptest.Contents(after)
		want := make(map[string]string)
		for key, value := range old {
			if changed, ok := now[key]; !ok {
				want[key] = "removed"
			} else if changed != value {
				want[key] = "changed"
			}
		}
		for key := range now {
			if _, ok := old[key]; !ok {
				want[key] = "added"
			}
		}
		config := filepath.Join(t.TempDir(), "config.yaml")
		text := "contexts: {after: {url: \"" + after.URL() + "\"}}\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, args := range map[string][]string{
			"file":  {"diff", file, "-u", after.URL(), "-o", "json"},
			"store": {"diff", "--to", "after", "--config", config, "-u", before.URL(), "-o", "json"},
		} {
			code, stdout, stderr := run(t, "", args...)
			if (code == 1) != (len(want) > 0) || code > 1 {
				t.Errorf("seed %d, %s: exit code %d with %d differences: %s", seed, name, code, len(want), stderr)
			}
			got, from, to := make(map[string]string), old, now
			if name == "file" { // from the store to the file
				from, to = now, old
			}
			for line := range strings.Lines(stdout) {
				var d difference
				if err := json.Unmarshal([]byte(line), &d); err != nil {
					t.Fatal(err)
				}
				key := d.text(d.Key, d.KeyB64)
				if _, twice := got[key]; twice {
					t.Errorf("seed %d, %s: %q appears twice", seed, name, key)
				}
				got[key] = d.Change
				if opposite := map[string]string{"added": "removed", "removed": "added"}[d.Change]; opposite != "" && name == "file" {
					got[key] = opposite
				}
				if before, after := d.text(d.Old, d.OldB64), d.text(d.New, d.NewB64); before != from[key] || after != to[key] {
					t.Errorf("seed %d, %s: %q: from %q to %q, want from %q to %q", seed, name, key, before, after, from[key], to[key])
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d, %s (-want +got):\n%s", seed, name, diff)
			}
		}
		// After an import of the file, the only differences are the keys that were added.
		if code, _, stderr := run(t, "", "import", file, "-u", after.URL()); code != 0 {
			t.Fatalf("import: exit code %d: %s", code, stderr)
		}
		for key, value := range apptest.Contents(after) {
			if was, ok := old[key]; ok && was != value || !ok && want[key] != "added" {
				t.Errorf("seed %d: after the import %q is %q, want %q", seed, key, value, was)
			}
		}
	}
}

// TestDiffCountsDeletedMeanwhile: a key that only the second side has, and that is deleted between SCAN and GET, counts
// as deleted while it was read.
func TestDiffCountsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	store, empty := emulator.Start(t), emulator.Start(t)
	file := filepath.Join(t.TempDir(), "file.jsonl")
	if err := os.WriteFile(file, []byte(`{"key":"other","value":"1"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store.Intercept(func(r emulator.Request) (a emulator.Action) {
		if r.Verb() == "GET" && r.Key() == "k" {
			apptest.Remove(store, "k")
		}
		return a
	})
	for name, args := range map[string][]string{
		"file":  {"diff", file, "-u", store.URL(), "-o", "json"},
		"store": {"diff", "--to", store.URL(), "-u", empty.URL(), "-o", "json"},
	} {
		apptest.Put(t, store, "k", "v")
		if _, _, stderr := run(t, "", args...); !strings.Contains(stderr, `"deleted_meanwhile":1`) {
			t.Errorf("%s: %s, want 1 key deleted meanwhile", name, stderr)
		}
	}
}

// A difference is one line of `diff -o json`.
type difference struct {
	Change, Key, Old, New string
	KeyB64                []byte `json:"key_b64"`
	OldB64                []byte `json:"old_b64"`
	NewB64                []byte `json:"new_b64"`
}

// text returns b64 as a string if it is present, and text otherwise.
func (difference) text(text string, b64 []byte) string {
	if b64 != nil {
		return string(b64)
	}
	return text
}
