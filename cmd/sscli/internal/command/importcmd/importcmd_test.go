package importcmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/command/importcmd"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/wire"
)

var run = apptest.Runner(app.Command{Name: "import", New: importcmd.New})

// TestImportResumes cuts the connection of an import. A second import resumes at the line that the first one names.
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
				key, value := fmt.Sprintf("key%d", n), fmt.Sprintf("%x", apptest.RandomBytes(rnd, 0, 9))
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
			args := append([]string{name, "-u", store.URL(), "-o", "json", "-t", "2s"}, flags...)
			from, tries := 1, 0
			for from > 0 {
				if tries++; tries > 3 {
					t.Fatalf("%v %+v: the third import does not reach the end", flags, action)
				}
				code, stdout, stderr := run(t, "", append(args, "--from-line", strconv.Itoa(from))...)
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
			if diff := cmp.Diff(want, apptest.Contents(store)); diff != "" {
				t.Errorf("%v %+v (-file +store):\n%s", flags, action, diff)
			}
		})
	}
}

// exported returns n lines as sscli export writes them, with versions.
func exported(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"key":"key%d","value":"v","version":{"hlc":"1:0:me"}}`+"\n", i)
	}
	return lines.String()
}

// TestImportStops: an import with versions ends at the first error, whatever is in flight.
func TestImportStops(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	store.Do(emulator.NewRequest("other", wire.AppendRequest(nil, wire.VerbSet, "key0", "fenced"),
		emulator.Property{Name: wire.PropTimestamp, Value: wire.Version{Wall: time.Now().UnixMilli(), Node: "other"}.String()},
		emulator.Property{Name: wire.PropFence, Value: wire.Version{Wall: time.Now().UnixMilli(), Node: "other"}.String()}))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(exported(2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		inflight := strconv.Itoa(1 << (i % 7))
		if code, _, stderr := run(t, "", file, "-u", store.URL(), "--inflight", inflight); code != fault.CodeFencing {
			t.Fatalf("--inflight %s: exit code %d, %s", inflight, code, stderr)
		}
	}
}

// TestImportInterrupted: an interrupted import from a pipe does not look complete.
func TestImportInterrupted(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	for range 40 {
		store := emulator.Start(t)
		in, out := io.Pipe()
		ctx, cancel := context.WithCancelCause(t.Context())
		a := &app.App{Commands: []app.Command{{Name: "import", New: importcmd.New}}, Stdin: in, Stdout: &terminal.Output{File: null}, Stderr: &terminal.Output{File: null}, Env: func(string) (string, bool) { return "", false }}
		ended := make(chan error)
		go func() { ended <- cmdline.Run(ctx, a, []string{"import", "-", "-u", store.URL()}) }()
		if _, err := io.WriteString(out, exported(5)); err != nil {
			t.Fatal(err)
		}
		await.State(t, store, func(s emulator.State) bool { return s.Requests == 10 })
		cancel(&signals.Interrupted{Signal: syscall.SIGINT})
		if err := <-ended; !fault.IsA[*signals.Interrupted](err) {
			t.Fatalf("the import ended with %v", err)
		}
		out.Close()
	}
}

// TestImportMistakeAtTheEnd: a mistake in the last line of a file is found before the first write. On standard input it
// is found after the writes, and the exit code says so.
func TestImportMistakeAtTheEnd(t *testing.T) {
	t.Parallel()
	text := exported(3000) + "no JSON\n"
	for _, tt := range []struct {
		from        string
		args        []string
		code, wrote int
	}{
		{"file", []string{"import"}, 2, 0},
		{"file", []string{"import", "--keep-going"}, 14, 3000},
		{"-", []string{"import"}, 14, 3000},
	} {
		store := emulator.Start(t)
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if tt.from == "file" {
			tt.from = file
		}
		a := apptest.NewApp([]app.Command{{Name: "import", New: importcmd.New}}, nil, null, null)
		a.Stdin = in
		code := a.Report(cmdline.Run(t.Context(), a, append(tt.args, tt.from, "-u", store.URL())))
		if wrote := len(store.Keys()); code != tt.code || wrote != tt.wrote {
			t.Errorf("%q: exit code %d after %d writes, want %d after %d", tt.args, code, wrote, tt.code, tt.wrote)
		}
		_, _ = in.Close(), null.Close()
	}
}

// TestDryRunPlansWhatImportWrites: --dry-run names the keys that an import of a file with a mistake would write: none,
// unless --keep-going is set.
func TestDryRunPlansWhatImportWrites(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(`{"key":"a","value":"1"}`+"\nno JSON\n"+`{"key":"b","value":"1"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--keep-going"}, {"--from-line", "3"}} {
		store := emulator.Start(t)
		args := append([]string{file, "-u", store.URL()}, flags...)
		dryCode, stdout, dryErr := run(t, "", append(args, "--dry-run")...)
		var planned []string
		for line := range strings.Lines(stdout) {
			planned = append(planned, strings.Split(line, "\t")[1])
		}
		code, _, stderr := run(t, "", args...)
		if diff := cmp.Diff(planned, store.Keys(), cmpopts.EquateEmpty()); diff != "" || (code == 0) != (dryCode == 0) {
			t.Errorf("%q: exit code %d after a dry run with %d, the store (-planned +written):\n%s%s%s", flags, code, dryCode, diff, dryErr, stderr)
		}
	}
}

// TestNewerThanTheFile: import counts each value of another client that it overwrites and that is newer than its line,
// whenever it was written, and no value that import itself wrote.
func TestNewerThanTheFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before []string // keys that another client sets before the import
		lines  []string // the key and the value of each line
		at     string   // another client sets theirs while import sets the first value of this key
		theirs string
		want   int
	}{
		{"before the import", []string{"c"}, []string{"a 1", "b 1", "c 1"}, "", "", 1},
		{"during the import", nil, []string{"a 1", "b 1", "c 1"}, "b", "c", 1},
		{"its own", nil, []string{"a 1", "b 1", "a 2", "b 2", "a 3"}, "", "", 0},
		{"repeated", []string{"a"}, []string{"a 1", "b 1", "a 2"}, "", "", 1},
		{"between two lines of a key", nil, []string{"a 1", "b 1", "a 2"}, "b", "a", 1},
		{"the value of the line", nil, []string{"a 1", "b 1", "c theirs"}, "b", "c", 0},
	} {
		store := emulator.Start(t)
		for _, key := range tt.before {
			apptest.Put(t, store, key, "theirs")
		}
		var once sync.Once
		store.Intercept(func(r emulator.Request) emulator.Action {
			if r.Verb() == wire.VerbSet && r.Key() == tt.at {
				once.Do(func() { apptest.Put(t, store, tt.theirs, "theirs") })
			}
			return emulator.Action{}
		})
		if newer, stderr := importNewer(t, store, tt.lines, "1"); newer != tt.want || strings.Contains(stderr, "newer version") != (tt.want > 0) {
			t.Errorf("%s: %d newer values, want %d: %s", tt.name, newer, tt.want, stderr)
		}
	}
}

// TestNewerIsCountedOnce: of several lines with a key, only the first overwrites the value of another client.
func TestNewerIsCountedOnce(t *testing.T) {
	t.Parallel()
	for _, inflight := range []string{"1", "2", "3", "5", "64"} {
		store := emulator.Start(t)
		var lines []string
		const keys = 100
		for i := range keys {
			key := fmt.Sprintf("key%d", i)
			apptest.Put(t, store, key, "theirs")
			lines = append(lines, key+" 1", key+" 2", key+" 3")
		}
		if newer, stderr := importNewer(t, store, lines, inflight); newer != keys {
			t.Errorf("--inflight %s: %d newer values, want %d: %s", inflight, newer, keys, stderr)
		}
	}
}

// importNewer imports lines, each with a key, a value and an old version, and returns the number of newer values.
func importNewer(t *testing.T, store *emulator.Server, lines []string, inflight string) (newer int, stderr string) {
	t.Helper()
	var text strings.Builder
	for _, line := range lines {
		key, value, _ := strings.Cut(line, " ")
		fmt.Fprintf(&text, `{"key":%q,"value":%q,"version":{"hlc":"1:0:me"}}`+"\n", key, value)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, "", file, "-u", store.URL(), "-o", "json", "--inflight", inflight)
	var sum struct{ Applied, Newer int }
	if err := json.Unmarshal([]byte(stdout), &sum); err != nil || code != 0 || sum.Applied != len(lines) {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	return sum.Newer, stderr
}
