package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/command/apply"
	"github.com/sscli/sscli/cmd/sscli/internal/command/basics"
	"github.com/sscli/sscli/cmd/sscli/internal/command/diff"
	"github.com/sscli/sscli/cmd/sscli/internal/command/export"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/systext"
	"github.com/sscli/sscli/internal/wire"
)

func commands() []app.Command {
	return []app.Command{{Name: "apply", New: apply.New}, {Name: "diff", New: diff.New}, {Name: "export", New: export.New}}
}

var run = apptest.Runner(commands()...)

// writeSource writes keys to a file in the format of export, and returns its name.
func writeSource(t *testing.T, keys map[string]string) string {
	t.Helper()
	var text []byte
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		line, err := json.Marshal(map[string][]byte{"key_b64": []byte(key), "value_b64": []byte(keys[key])})
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	name := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// actions counts the actions in the output of apply: the first word of each line.
func actions(stdout string) map[string]int {
	n := make(map[string]int)
	for line := range strings.Lines(stdout) {
		action, _, _ := strings.Cut(line, "\t")
		n[action]++
	}
	return n
}

// TestApplyTwiceChangesNothing applies random keys to random stores. Afterwards the store holds those keys, and others
// only if they are not pruned. Then diff finds no difference, and a second apply writes nothing.
func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 26))
		store := emulator.Start(t, emulator.Options{ScanPage: 7})
		want := make(map[string]string)
		for range rnd.IntN(300) {
			key, value := apptest.RandomBytes(rnd, 1, 12), apptest.RandomBytes(rnd, 0, 20)
			want[key] = value
			switch rnd.IntN(4) {
			case 0:
				apptest.Put(t, store, key, value)
			case 1:
				apptest.Put(t, store, key, value+"x")
			case 2:
				apptest.Put(t, store, fmt.Sprintf("stale/%x", key), value) // SCAN may not list keys that are not text
			}
		}
		apptest.Put(t, store, "other/key", "1")
		before := apptest.Contents(store)
		source := writeSource(t, want)
		args := []string{"apply", source, "--prune", "stale/*", "--prune-all", "--yes", "-q"}
		if code, planned, stderr := run(t, store.URL(), append(args, "--dry-run")...); code != 0 || !cmp.Equal(before, apptest.Contents(store)) {
			t.Errorf("seed %d: dry run: exit code %d: %s%s", seed, code, planned, stderr)
		}
		code, stdout, stderr := run(t, store.URL(), args...)
		wantActions := make(map[string]int)
		for key, value := range want {
			switch was, found := before[key]; {
			case !found:
				wantActions["created"]++
			case was == value:
				wantActions["unchanged"]++
			default:
				wantActions["changed"]++
			}
		}
		for key := range before {
			if _, wanted := want[key]; !wanted && strings.HasPrefix(key, "stale/") {
				wantActions["deleted"]++
			}
		}
		if diff := cmp.Diff(wantActions, actions(stdout)); diff != "" || code != 0 {
			t.Errorf("seed %d: exit code %d (-want +got):\n%s%s", seed, code, diff, stderr)
		}
		want["other/key"] = "1"
		if diff := cmp.Diff(want, apptest.Contents(store)); diff != "" {
			t.Errorf("seed %d: the store (-want +got):\n%s", seed, diff)
		}
		if code, stdout, stderr := run(t, store.URL(), "diff", source, "stale/*"); code != 0 {
			t.Errorf("seed %d: diff: exit code %d: %s%s", seed, code, stdout, stderr)
		}
		var writes atomic.Int32
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() != wire.VerbGet && r.Verb() != wire.VerbScan {
				writes.Add(1)
			}
			return emulator.Action{}
		})
		code, stdout, stderr = run(t, store.URL(), args...)
		if again := actions(stdout); code != 0 || writes.Load() > 0 || again["unchanged"] != len(want)-1 || len(again) > 1 {
			t.Errorf("seed %d: the second apply sent %d writes, exit code %d: %s%s", seed, writes.Load(), code, stdout, stderr)
		}
	}
}

// TestMeanwhile: apply leaves a key alone that another client creates, changes or deletes right before the write,
// unless the key then has the wanted value.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		other func(t *testing.T, store *emulator.Server)
		code  int
		lines string
		want  map[string]string
	}{
		{"created", func(t *testing.T, store *emulator.Server) { apptest.Put(t, store, "a", "theirs") }, 1,
			"conflict\ta\nunchanged\tb\ndeleted\told\n", map[string]string{"a": "theirs", "b": "1"}},
		{"created as it should be", func(t *testing.T, store *emulator.Server) { apptest.Put(t, store, "a", "1") }, 0,
			"unchanged\ta\nunchanged\tb\ndeleted\told\n", map[string]string{"a": "1", "b": "1"}},
		{"pruned key changed", func(t *testing.T, store *emulator.Server) { apptest.Put(t, store, "old", "theirs") }, 1,
			"created\ta\nunchanged\tb\nconflict\told\n", map[string]string{"a": "1", "b": "1", "old": "theirs"}},
		{"pruned key deleted", func(_ *testing.T, store *emulator.Server) { apptest.Remove(store, "old") }, 0,
			"created\ta\nunchanged\tb\n", map[string]string{"a": "1", "b": "1"}},
	} {
		store := emulator.Start(t)
		apptest.Put(t, store, "b", "1")
		apptest.Put(t, store, "old", "1")
		var done atomic.Bool
		store.Intercept(func(r emulator.Request) emulator.Action {
			if (r.Verb() == wire.VerbSet || r.Verb() == wire.VerbVDel) && (r.Key() == "old") == strings.HasPrefix(tt.name, "pruned") && !done.Swap(true) {
				tt.other(t, store)
			}
			return emulator.Action{}
		})
		source := writeSource(t, map[string]string{"a": "1", "b": "1"})
		code, stdout, stderr := run(t, store.URL(), "apply", source, "--prune", "old", "--prune-all", "--yes", "-o", "template={{.action}}\t{{.key}}")
		if code != tt.code || stdout != tt.lines || strings.Contains(stderr, "another client changed") != (code == 1) {
			t.Errorf("%s: exit code %d, printed %q; %s", tt.name, code, stdout, stderr)
		}
		if diff := cmp.Diff(tt.want, apptest.Contents(store)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestLostAnswers: a broker loses a tenth of the writes, and the replies to another tenth. Every reported action is
// true, and a second run completes the first.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	want := make(map[string]string)
	for i := range 120 {
		key := fmt.Sprintf("key%03d", i)
		want[key] = "new"
		switch i % 3 {
		case 0:
			apptest.Put(t, store, key, "old")
		case 1:
			apptest.Put(t, store, key, "new")
		}
	}
	before := apptest.Contents(store)
	var n atomic.Int32
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() != wire.VerbSet {
			return emulator.Action{}
		}
		k := n.Add(1)
		return emulator.Action{DropReply: k%10 == 3, Drop: k%10 == 7}
	})
	source := writeSource(t, want)
	code, stdout, stderr := run(t, store.URL(), "apply", source, "-t", "2s")
	if code != 11 && code != 124 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	now := apptest.Contents(store)
	for line := range strings.Lines(stdout) {
		words := strings.Split(strings.TrimSpace(line), "\t")
		was, found := before[words[1]]
		truth := map[string]bool{"created": !found, "changed": found && was == "old", "unchanged": was == "new"}[words[0]]
		if !truth || now[words[1]] != "new" {
			t.Errorf("%q of a key that held %q, and holds %q", line, was, now[words[1]])
		}
	}
	store.Intercept(nil)
	if code, stdout, stderr := run(t, store.URL(), "apply", source); code != 0 || !cmp.Equal(want, apptest.Contents(store)) {
		t.Errorf("again: exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestPruneByNothing: a source without keys deletes nothing, even next to a source with keys, unless --prune-all is
// given.
func TestPruneByNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"dotfiles/.git/config": "x", "dotfiles/.env": "x", "nested/a/.keep": "", "list.yaml": "keys: []\n", "zero.jsonl": "",
		"blank.jsonl": "\n \n", "missing.jsonl": `{"key":"gone","found":false}`, "array.json": "[]", "full.yaml": "keys: [{key: q/a, value: 1}]\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]string{"q/a": "1", "q/b": "2"}
	for _, source := range []string{"-", "dotfiles", "nested", "list.yaml", "zero.jsonl", "blank.jsonl", "missing.jsonl", "array.json", "full.yaml dotfiles", "zero.jsonl full.yaml"} {
		store := emulator.Start(t)
		for key, value := range before {
			apptest.Put(t, store, key, value)
		}
		args := []string{"apply", "--prune", "q/*", "--yes"}
		for name := range strings.FieldsSeq(source) {
			if name != "-" {
				name = filepath.Join(dir, name)
			}
			args = append(args, name)
		}
		code, stdout, stderr := run(t, store.URL(), args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "no key") || !cmp.Equal(before, apptest.Contents(store)) {
			t.Errorf("%s: exit code %d, the store has %q\n%s%s", source, code, apptest.Contents(store), stdout, stderr)
		}
		if code, _, stderr := run(t, store.URL(), append(args, "--prune-all")...); code != 0 || apptest.Contents(store)["q/b"] != "" {
			t.Errorf("%s --prune-all: exit code %d, the store has %q\n%s", source, code, apptest.Contents(store), stderr)
		}
	}
}

// TestSourceChanges: if a source is removed or changed after the first write, the exit code says that apply wrote some
// keys, and the key keeps its value. If that happens before the first write, apply sends nothing.
func TestSourceChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3000 { // more than the number of requests in flight
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("key%04d", i)), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, text string // of the last file
		change     func(name string) error
		want       string
	}{
		{"last", "1", os.Remove, "no such file"},
		{"last", "1", func(name string) error { return os.Truncate(name, 0) }, "changed while it was read"},
		{"last.csv", "id\n1\n2\n", func(name string) error { return os.Truncate(name, int64(len("id\n1\n"))) }, "changed while it was read"},
	} {
		for _, dryRun := range []string{"--dry-run=false", "--dry-run"} {
			last := filepath.Join(dir, tt.name)
			if err := os.WriteFile(last, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			store := emulator.Start(t)
			apptest.Put(t, store, "last", "theirs")
			var once sync.Once
			store.Intercept(func(r emulator.Request) emulator.Action {
				if r.Verb() == wire.VerbSet || dryRun == "--dry-run" {
					once.Do(func() {
						if err := tt.change(last); err != nil {
							t.Error(err)
						}
					})
				}
				return emulator.Action{}
			})
			code, _, stderr := run(t, store.URL(), "apply", dir, dryRun)
			want := 14
			if dryRun == "--dry-run" {
				want = 2
			}
			if written := len(store.Keys()) - 1; code != want || !strings.Contains(systext.Unix(stderr), tt.want) || (written > 0) != (want == 14) || apptest.Contents(store)["last"] != "theirs" {
				t.Errorf("%s %s: exit code %d after %d writes: %s", tt.name, dryRun, code, written, stderr)
			}
			if err := os.Remove(last); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
}

// TestWarnings: what came with the reply about a key is printed after the results of the keys before it.
func TestWarnings(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Skew: time.Hour})
	keys := make(map[string]string)
	for i := range 100 {
		keys[fmt.Sprint("k", i)] = "v"
	}
	commands := append(commands(), app.Command{Name: "del", New: verb.Command(basics.Del)})
	for _, args := range [][]string{{"apply", writeSource(t, keys)}, {"del", "--match", "k*", "--yes"}} {
		output, err := os.Create(filepath.Join(t.TempDir(), "output"))
		if err != nil {
			t.Fatal(err)
		}
		a := apptest.NewApp(commands, map[string]string{"SSCLI_URL": store.URL()}, output, output)
		code := a.Report(cmdline.Run(t.Context(), a, args))
		text, err := os.ReadFile(output.Name())
		if err != nil || code != 0 {
			t.Errorf("%s: exit code %d, %v", args[0], code, err)
		}
		warned := false
		for line := range strings.Lines(string(text)) {
			warning := strings.Contains(line, "warning")
			if warning && warned {
				t.Errorf("%s: a warning before the result of the key before it:\n%s", args[0], text)
				break
			}
			warned = warning
		}
	}
}
