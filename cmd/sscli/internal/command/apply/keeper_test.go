package apply_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/testkit/freeport"
	"github.com/sscli/sscli/internal/wire"
)

// awaitKeys waits until a store holds exactly these keys.
func awaitKeys(t *testing.T, server *emulator.Server, want map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // several rounds, each of which may wait for lost replies
	defer cancel()
	for requests := -1; ; {
		if cmp.Equal(want, apptest.Contents(server)) {
			return
		}
		err := server.Await(ctx, func(s emulator.State) bool {
			changed := s.Requests != requests
			requests = s.Requests
			return changed
		})
		if err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, cmp.Diff(want, apptest.Contents(server)))
		}
	}
}

// TestEvery: apply --every restores the keys after an emulator restarts with an empty store, although the broker loses
// replies and breaks connections, and other clients write the same keys. At the end the store is right, and every
// printed line is about a write that was made.
func TestEvery(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(26, 2))
	want := make(map[string]string)
	for i := range 300 { // more keys than apply watches
		want[fmt.Sprintf("key%03d", i)] = fmt.Sprintf("value %d", i)
	}
	source := writeSource(t, want)
	address := freeport.Address(t)
	server := emulator.Start(t, emulator.Options{Listen: address})
	cmd := apptest.Start(t, commands(), nil, "apply", source, "--every", "300ms", "-t", "5s", "-u", server.URL())
	lines := make(chan []string, 1)
	go func() {
		text, _ := io.ReadAll(cmd.Stdout)
		lines <- strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}()
	awaitKeys(t, server, want)

	var mu sync.Mutex
	written := make(map[string]bool) // key, tab, and version of each write that reached a store
	collect := func(server *emulator.Server) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range server.Changes() {
			if string(c.Value) == want[c.Key] {
				written[c.Key+"\t"+c.Version.String()] = true
			}
		}
	}
	for round := range 4 {
		n := 0
		server.Intercept(func(r emulator.Request) emulator.Action {
			mu.Lock()
			defer mu.Unlock()
			if n++; r.Verb() == wire.VerbSet {
				return emulator.Action{DropReply: n%97 == 5, Drop: n%97 == 50, CutAfter: n%397 == 60}
			}
			return emulator.Action{Cut: n%1201 == 1000}
		})
		for range 20 {
			key := fmt.Sprintf("key%03d", rnd.IntN(len(want)))
			if rnd.IntN(2) == 0 {
				apptest.Remove(server, key)
			} else {
				apptest.Put(t, server, key, "theirs")
			}
		}
		if round%2 == 0 {
			awaitKeys(t, server, want) // although replies are lost
		}
		collect(server)
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		collect(server)
		server = emulator.Start(t, emulator.Options{Listen: address, Changes: true})
	}
	awaitKeys(t, server, want)
	collect(server)
	// The source changes too.
	want["key000"], want["more"] = "changed", "1"
	changed := writeSource(t, want)
	if err := files.RetryBusy(func() error { return os.Rename(changed, source) }); err != nil { // it may be being read
		t.Fatal(err)
	}
	awaitKeys(t, server, want)
	collect(server)
	server.RefuseConnect(func(string, string) byte { return 0x87 })
	server.DropAll()
	code, stderr := cmd.Wait(t)
	if code != 4 {
		t.Errorf("exit code %d after a refused login:\n%s", code, stderr)
	}
	seen := 0
	for _, line := range <-lines {
		words := strings.Split(line, "\t")
		switch {
		case words[0] == "conflict":
		case words[0] != "created" && words[0] != "changed":
			t.Errorf("printed %q", line)
		case !written[words[1]+"\t"+words[2]]:
			t.Errorf("%q: no such write", line)
		default:
			seen++
		}
	}
	// The first round and the one after the last restart make 600 writes. Those that a slow machine answers late are
	// not printed, because their outcome is unknown.
	if seen < 300 {
		t.Errorf("%d writes were printed", seen)
	}
	if t.Failed() {
		t.Log(stderr)
	}
}

// stderrOf starts a command that runs until the end of the test, and returns a scanner of its standard error.
func stderrOf(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmdline.Run(ctx, apptest.NewApp(commands(), nil, stdout, w), args)
	}()
	t.Cleanup(func() {
		cancel()
		_ = r.Close()
		<-done
		_, _ = w.Close(), stdout.Close()
	})
	return bufio.NewScanner(r)
}

// TestEveryEmptySource: a source that becomes empty or unreadable, like an unmounted volume, changes nothing, and each
// round reports it. The rounds resume when the keys are back.
func TestEveryEmptySource(t *testing.T) {
	t.Parallel()
	for _, prune := range []bool{true, false} {
		dir := t.TempDir()
		defaults, volume, away := filepath.Join(dir, "defaults.yaml"), filepath.Join(dir, "volume"), filepath.Join(dir, "away")
		write := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		rename := func(from, to string) {
			t.Helper()
			if err := files.RetryBusy(func() error { return os.Rename(from, to) }); err != nil {
				t.Fatal(err)
			}
		}
		write(defaults, "keys: [{key: a, value: default}]\n")
		if err := os.Mkdir(volume, 0o700); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(volume, "a"), "mine")
		write(filepath.Join(volume, "b"), "mine")
		server := emulator.Start(t)
		args := []string{"apply", defaults, volume, "--every", "10ms", "-u", server.URL()}
		if prune {
			args = append(args, "--prune", "*", "--yes")
		}
		lines := stderrOf(t, args...)
		says := func(text string) { // seen twice, because each round reports it
			t.Helper()
			for n := 0; n < 2; {
				if !lines.Scan() {
					t.Fatalf("stderr ended before %q", text)
				}
				if strings.Contains(lines.Text(), text) {
					n++
				}
			}
		}
		want := map[string]string{"a": "mine", "b": "mine"}
		awaitKeys(t, server, want)
		rename(volume, away)
		says("volume")
		if err := os.Mkdir(volume, 0o700); err != nil {
			t.Fatal(err)
		}
		says("holds no key")
		if diff := cmp.Diff(want, apptest.Contents(server)); diff != "" {
			t.Errorf("prune %v: the store (-want +got):\n%s", prune, diff)
		}
		if err := files.RetryBusy(func() error { return os.Remove(volume) }); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(away, "a"), "changed")
		rename(away, volume)
		want["a"] = "changed"
		awaitKeys(t, server, want)
	}
}
