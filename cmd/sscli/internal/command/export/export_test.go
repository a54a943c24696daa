package export_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/apply"
	"github.com/sscli/sscli/cmd/sscli/internal/command/diff"
	"github.com/sscli/sscli/cmd/sscli/internal/command/export"
	"github.com/sscli/sscli/cmd/sscli/internal/command/importcmd"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/wire"
)

// TestExportLargeValue: apply, diff and import read the export of a large value, although its JSON line is six times as
// long as the value.
func TestExportLargeValue(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a second")
	}
	store, copied := emulator.Start(t), emulator.Start(t)
	apptest.Put(t, store, "a", strings.Repeat("\x00", 12<<20))
	apptest.Put(t, store, "b", "1")
	file := filepath.Join(t.TempDir(), "file")
	for _, args := range [][]string{
		{"export", "-u", store.URL(), "-f", file}, {"import", file, "-u", copied.URL()}, {"diff", file, "-u", copied.URL()}, {"apply", file, "-u", copied.URL()},
	} {
		if code, stdout, stderr := run(t, "", args...); code != 0 {
			t.Fatalf("%s: exit code %d: %.200s%.500s", args[0], code, stdout, stderr)
		}
	}
	if !maps.Equal(apptest.Contents(store), apptest.Contents(copied)) {
		t.Error("the stores differ")
	}
}

var run = apptest.Runner(app.Command{Name: "export", New: export.New}, app.Command{Name: "import", New: importcmd.New}, app.Command{Name: "diff", New: diff.New}, app.Command{Name: "apply", New: apply.New})

// TestExportSurvivesABrokenConnection cuts the connection at pages and at GETs. The exported file is complete.
func TestExportSurvivesABrokenConnection(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	store, copied := emulator.Start(t, emulator.Options{ScanPage: 20}), emulator.Start(t)
	for n := range 500 {
		apptest.Put(t, store, fmt.Sprintf("key%d", n), apptest.RandomBytes(rnd, 0, 50))
	}
	var requests, cuts atomic.Int32
	store.Intercept(func(emulator.Request) emulator.Action {
		switch n := requests.Add(1); {
		case n%97 == 0:
			cuts.Add(1)
			return emulator.Action{Cut: true}
		case n%131 == 0:
			cuts.Add(1)
			return emulator.Action{CutAfter: true}
		}
		return emulator.Action{}
	})
	file := filepath.Join(t.TempDir(), "file")
	code, _, stderr := run(t, "", "export", "-u", store.URL(), "-f", file)
	if code != 0 || cuts.Load() < 3 || !strings.Contains(stderr, "; connecting again\n") || !strings.Contains(stderr, "the broker answers again after ") || !strings.Contains(stderr, "sscli: 500 keys, ") {
		t.Fatalf("exit code %d after %d cuts: %s", code, cuts.Load(), stderr)
	}
	if code, _, stderr := run(t, "", "import", file, "-u", copied.URL()); code != 0 {
		t.Fatalf("import: exit code %d: %s", code, stderr)
	}
	if diff := cmp.Diff(apptest.Contents(store), apptest.Contents(copied)); diff != "" {
		t.Errorf("the stores differ (-exported +imported):\n%s", diff)
	}
}

// TestExportSaysWhatChanged writes and deletes keys between the scan and the reads.
func TestExportSaysWhatChanged(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-o raw":  "while the keys were read, 1 key was written and 1 key was deleted: c, \"d\\x00\"\n",
		"-o json": `"written_meanwhile":1,"deleted_meanwhile":1,"changed_keys":["c","d\u0000"]}`,
	} {
		// The versions of the keys are older than the export, by any clock.
		store := emulator.Start(t, emulator.Options{Skew: -10 * time.Second})
		for _, key := range []string{"a", "b", "c", "d\x00"} {
			apptest.Put(t, store, key, "1")
		}
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() == wire.VerbScan {
				return emulator.Action{DelayReply: time.Hour}
			}
			return emulator.Action{}
		})
		done := make(chan string)
		go func() {
			code, _, stderr := run(t, "", append(strings.Fields(args), "export", "-t", "1m", "-u", store.URL())...)
			if code != 0 {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			done <- stderr
		}()
		await.State(t, store, func(s emulator.State) bool { return s.Delayed == 1 })
		store.FastForward(20 * time.Second)
		apptest.Put(t, store, "c", "2")
		apptest.Remove(store, "d\x00")
		store.FastForward(time.Hour)
		if stderr := <-done; !strings.Contains(stderr, want) {
			t.Errorf("%s: %s, want %s", args, stderr, want)
		}
	}
}
