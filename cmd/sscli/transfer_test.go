package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/topics"
	"github.com/sscli/sscli/emulator"
)

// runHere runs sscli in this process and returns its exit code and what it printed.
func runHere(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a := &app.App{Commands: table(), Topics: topics.All, Stdin: strings.NewReader(""), Stdout: open("stdout"), Stderr: open("stderr"),
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	code = a.Report(runLine(t.Context(), a, "sscli", args))
	var texts [2]string
	for i, f := range []*os.File{a.Stdout, a.Stderr} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return code, texts[0], texts[1]
}

// contents returns the keys and values of a store.
func contents(store *emulator.Server) map[string]string {
	all := make(map[string]string)
	for _, key := range store.Keys() {
		if e, ok := store.Get(key); ok {
			all[key] = string(e.Value)
		}
	}
	return all
}

// randomBytes returns between least and most bytes of any kind.
func randomBytes(rnd *rand.Rand, least, most int) string {
	b := make([]byte, least+rnd.IntN(most-least+1))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return string(b)
}

func put(t *testing.T, store *emulator.Server, key, value string) {
	t.Helper()
	if _, err := store.Set(key, value); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a key.
func remove(store *emulator.Server, key string) {
	now := wire.Version{Wall: store.Now().UnixMilli(), Node: "test"}
	store.Do(emulator.NewRequest("", wire.AppendRequest(nil, wire.VerbDel, key), emulator.Property{Name: wire.PropTimestamp, Value: now.String()}))
}

// TestDiffFindsAnEditScript changes a store at random, and has diff find the changes and no
// others: between a file and the store, and between the store before and after.
func TestDiffFindsAnEditScript(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		before, after := emulator.Start(t, emulator.Options{ScanPage: 7}), emulator.Start(t, emulator.Options{ScanPage: 5})
		value := func() string {
			if rnd.IntN(2) == 0 {
				return randomBytes(rnd, 0, 20)
			}
			return fmt.Sprintf(`{"a":%d.0,"list":[%d,{"b":%d}],"odd name":"é"}`, rnd.IntN(3), rnd.IntN(3), rnd.IntN(3))
		}
		for range 150 {
			key, value := randomBytes(rnd, 1, 12), value()
			put(t, before, key, value)
			put(t, after, key, value)
		}
		file := filepath.Join(t.TempDir(), "file")
		if code, _, stderr := runHere(t, nil, "export", "-u", before.URL(), "-f", file); code != 0 {
			t.Fatalf("export: exit code %d: %s", code, stderr)
		}
		for range rnd.IntN(60) {
			keys := after.Keys()
			switch key := keys[rnd.IntN(len(keys))]; rnd.IntN(3) {
			case 0:
				put(t, after, randomBytes(rnd, 1, 12), value())
			case 1:
				put(t, after, key, value())
			case 2:
				remove(after, key)
			}
		}
		old, now := contents(before), contents(after)
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
			code, stdout, stderr := runHere(t, nil, args...)
			if (code == 1) != (len(want) > 0) || code > 1 {
				t.Errorf("seed %d, %s: exit code %d with %d differences: %s", seed, name, code, len(want), stderr)
			}
			got := make(map[string]string)
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
				if before, after := d.text(d.Old, d.OldB64), d.text(d.New, d.NewB64); before != old[key] || after != now[key] {
					t.Errorf("seed %d, %s: %q: from %q to %q, want from %q to %q", seed, name, key, before, after, old[key], now[key])
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d, %s (-want +got):\n%s", seed, name, diff)
			}
		}
		// An import of the file leaves no difference but what was added.
		if code, _, stderr := runHere(t, nil, "import", file, "-u", after.URL()); code != 0 {
			t.Fatalf("import: exit code %d: %s", code, stderr)
		}
		for key, value := range contents(after) {
			if was, ok := old[key]; ok && was != value || !ok && want[key] != "added" {
				t.Errorf("seed %d: after the import %q is %q, want %q", seed, key, value, was)
			}
		}
	}
}

// A difference is a line of diff -o json.
type difference struct {
	Change, Key, Old, New string
	KeyB64                []byte `json:"key_b64"`
	OldB64                []byte `json:"old_b64"`
	NewB64                []byte `json:"new_b64"`
}

// text returns a member that is text, or else base64.
func (difference) text(text string, b64 []byte) string {
	if b64 != nil {
		return string(b64)
	}
	return text
}

// TestExportSurvivesABrokenConnection cuts the connection at pages and at GETs. The file is
// whole all the same.
func TestExportSurvivesABrokenConnection(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	store, copied := emulator.Start(t, emulator.Options{ScanPage: 20}), emulator.Start(t)
	for n := range 500 {
		put(t, store, fmt.Sprintf("key%d", n), randomBytes(rnd, 0, 50))
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
	code, _, stderr := runHere(t, nil, "export", "-u", store.URL(), "-f", file)
	if code != 0 || cuts.Load() < 3 || !strings.Contains(stderr, "; connecting again\n") || !strings.Contains(stderr, "the broker answers again after ") || !strings.Contains(stderr, "sscli: 500 keys, ") {
		t.Fatalf("exit code %d after %d cuts: %s", code, cuts.Load(), stderr)
	}
	if code, _, stderr := runHere(t, nil, "import", file, "-u", copied.URL()); code != 0 {
		t.Fatalf("import: exit code %d: %s", code, stderr)
	}
	if diff := cmp.Diff(contents(store), contents(copied)); diff != "" {
		t.Errorf("the stores differ (-exported +imported):\n%s", diff)
	}
}

// TestExportSaysWhatChanged writes and deletes keys between the scan and the reading.
func TestExportSaysWhatChanged(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-o raw":  "while the keys were read, 1 key was written and 1 key was deleted: c, \"d\\x00\"\n",
		"-o json": `"written_meanwhile":1,"deleted_meanwhile":1,"changed_keys":["c","d\u0000"]}`,
	} {
		// The versions of the keys are older than the export, by any clock.
		store := emulator.Start(t, emulator.Options{Skew: -10 * time.Second})
		for _, key := range []string{"a", "b", "c", "d\x00"} {
			put(t, store, key, "1")
		}
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() == wire.VerbScan {
				return emulator.Action{DelayReply: 25 * time.Second}
			}
			return emulator.Action{}
		})
		done := make(chan string)
		go func() {
			code, _, stderr := runHere(t, nil, append(strings.Fields(args), "export", "-u", store.URL())...)
			if code != 0 {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			done <- stderr
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := store.Await(ctx, func(s emulator.State) bool { return s.Delayed == 1 }); err != nil {
			t.Fatal(err)
		}
		store.FastForward(20 * time.Second)
		put(t, store, "c", "2")
		remove(store, "d\x00")
		store.FastForward(5 * time.Second)
		if stderr := <-done; !strings.Contains(stderr, want) {
			t.Errorf("%s: %s, want %s", args, stderr, want)
		}
	}
}

// TestImportResumes cuts the connection of an import. Another one goes on from the line that
// the first one names.
func TestImportResumes(t *testing.T) {
	t.Parallel()
	const keys = 300
	for _, tt := range []struct {
		flags  []string
		action emulator.Action
	}{
		{nil, emulator.Action{CutAfter: true}},
		{[]string{"--only-new"}, emulator.Action{Cut: true}},
		{[]string{"--inflight", "1"}, emulator.Action{Disconnect: 0x8B}},
	} {
		t.Run(strings.Join(tt.flags, " "), func(t *testing.T) {
			t.Parallel()
			flags, action := tt.flags, tt.action
			store := emulator.Start(t)
			var file bytes.Buffer
			want := make(map[string]string)
			rnd := rand.New(rand.NewPCG(5, 6))
			for n := range keys {
				key, value := fmt.Sprintf("key%d", n), fmt.Sprintf("%x", randomBytes(rnd, 0, 9))
				want[key] = value
				fmt.Fprintf(&file, "{\"key\":%q,\"value\":%q}\n", key, value)
			}
			name := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			var writes atomic.Int32
			store.Intercept(func(r emulator.Request) emulator.Action {
				if r.Verb() == wire.VerbSet && writes.Add(1) == keys/2 {
					return action
				}
				return emulator.Action{}
			})
			args := append([]string{"import", name, "-u", store.URL(), "-o", "json", "-t", "1s"}, flags...)
			from, tries := 1, 0
			for from > 0 {
				if tries++; tries > 3 {
					t.Fatalf("%v %+v: the third import does not reach the end", flags, action)
				}
				code, stdout, stderr := runHere(t, nil, append(args, "--from-line", strconv.Itoa(from))...)
				var sum struct {
					Op                               string
					Lines, Applied, Refused, Unknown int
					Resume                           int `json:"resume_line"`
				}
				if err := json.Unmarshal([]byte(stdout), &sum); err != nil {
					t.Fatalf("%v: %q %s", err, stdout, stderr)
				}
				if sum.Op != "import" || (code == 0) != (sum.Resume == 0) || code == 1 || code == 0 && sum.Refused+sum.Unknown > 0 {
					t.Errorf("%v %+v: exit code %d, %s", flags, action, code, stdout)
				}
				if sum.Resume > 0 && (sum.Resume < from || !strings.Contains(stderr, fmt.Sprintf("--from-line %d", sum.Resume))) {
					t.Errorf("%v %+v: begun with line %d, to go on from line %d: %s", flags, action, from, sum.Resume, stderr)
				}
				from = sum.Resume
			}
			if diff := cmp.Diff(want, contents(store)); diff != "" {
				t.Errorf("%v %+v (-file +store):\n%s", flags, action, diff)
			}
		})
	}
}
