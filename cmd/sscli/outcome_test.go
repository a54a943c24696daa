package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/wire"
)

// A writeForm is a command that writes the key k, and the same request as another client sends it.
type writeForm struct {
	command string
	request string // words of the protocol
	has     string // value of the key before; "" = the key is missing
	fence   string // fencing token of request
}

const outcomeToken = "1696374425000:1:StateStore"

var writeForms = []writeForm{
	{command: "set k v", request: "SET k v"},
	{command: "set k v", request: "SET k v", has: "v"},
	{command: "set k v NX", request: "SET k v NX"},
	{command: "set k v NX", request: "SET k v NX", has: "v"},
	{command: "set k v NEX", request: "SET k v NEX"},
	{command: "set k v NEX", request: "SET k v NEX", has: "v"},
	{command: "set k v PX 60000", request: "SET k v PX 60000"},
	{command: "set k v NX PX 60000", request: "SET k v NX PX 60000"},
	{command: "set k v --fence " + outcomeToken, request: "SET k v", fence: outcomeToken},
	{command: "vdel k v", request: "VDEL k v", has: "v"},
	{command: "vdel k v", request: "VDEL k v", has: "w"},
	{command: "vdel k v", request: "VDEL k v"},
	{command: "del k", request: "DEL k", has: "v"},
	{command: "del k", request: "DEL k"},
	{command: "del k --fence " + outcomeToken, request: "DEL k", has: "v", fence: outcomeToken},
	{command: "del k --fence " + outcomeToken, request: "DEL k", fence: outcomeToken},
	{command: "lock acquire k --holder v --ttl 10m", request: "SET k v NEX PX 600000"},
	{command: "lock acquire k --holder v --try --ttl 10m", request: "SET k v NEX PX 600000"},
	{command: "lock acquire k --holder v --ttl 10m", request: "SET k v NEX PX 600000", has: "v"},
	{command: "lock acquire k --holder v --try --ttl 10m", request: "SET k v NEX PX 600000", has: "v"},
	{command: "lock renew k --holder v --ttl 10m", request: "SET k v NEX PX 600000", has: "v"},
	{command: "lock release k --holder v", request: "VDEL k v", has: "v"},
	{command: "lock release k --holder v", request: "VDEL k v"},
}

// TestOutcomes drops, garbles, delays or duplicates the first reply to each form of a write. Meanwhile another client
// sends the same request before, after or not at all, or writes the key again after a delete. Our clock is 30 s ahead
// of the other client's and the store's. The exit code must never claim more than the store's record of changes shows.
func TestOutcomes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	t.Parallel()
	faults := map[string]emulator.Action{
		"none":          {},
		"lost before":   {Drop: true},
		"lost after":    {DropReply: true},
		"garbled":       {Rewrite: func(a *emulator.Answer) { a.Payload = []byte("+O") }},
		"no status":     {Rewrite: func(a *emulator.Answer) { a.Set(wire.PropStatus, "") }},
		"late":          {DelayReply: 100 * time.Millisecond},
		"much too late": {DelayReply: 3 * time.Second},
		"doubled":       {Duplicate: true},
	}
	var all sync.WaitGroup
	few := make(chan struct{}, 128)
	for fault, action := range faults {
		for _, form := range writeForms {
			for _, other := range []string{"nobody", "before", "after", "again"} {
				if other == "again" && !strings.HasPrefix(form.request, "DEL") && !strings.HasPrefix(form.request, "VDEL") {
					continue
				}
				all.Go(func() {
					few <- struct{}{}
					defer func() { <-few }()
					if wrong := checkOutcome(t, form, action, other, fault == "none" || fault == "late" || fault == "doubled"); wrong != "" {
						t.Errorf("%s (%q before), answer %s, another writes %s: %s", form.command, form.has, fault, other, wrong)
					}
				})
			}
		}
	}
	all.Wait()
}

// checkOutcome runs a command and returns what is wrong with its exit code. answered says whether the command got its
// reply in time.
func checkOutcome(t *testing.T, form writeForm, action emulator.Action, other string, answered bool) string {
	store := emulator.Start(t, emulator.Options{Skew: -30 * time.Second})
	do := func(client, words, fence string) {
		ts := wire.Version{Wall: store.Now().UnixMilli(), Node: client}
		properties := []emulator.Property{{Name: wire.PropTimestamp, Value: ts.String()}}
		if fence != "" {
			properties = append(properties, emulator.Property{Name: wire.PropFence, Value: fence})
		}
		store.Do(emulator.NewRequest(client, wire.AppendRequest(nil, strings.Fields(words)...), properties...))
	}
	if form.has != "" {
		do("setup", "SET k "+form.has, "")
	}
	verb, _, _ := strings.Cut(form.request, " ")
	var once sync.Once
	var after *time.Timer
	store.Intercept(func(r emulator.Request) (now emulator.Action) {
		if r.Verb() != verb {
			return now
		}
		once.Do(func() {
			now = action
			switch other {
			case "before":
				do("other", form.request, form.fence)
			case "after":
				after = time.AfterFunc(50*time.Millisecond, func() { do("other", form.request, form.fence) })
			case "again":
				after = time.AfterFunc(50*time.Millisecond, func() { do("other", "SET k again", "") })
			}
		})
		return now
	})
	timeout := "2s" // the command waits for all of it
	if answered {
		timeout = "1m"
	}
	args := append(strings.Fields(form.command), "-u", store.URL(), "-i", "me", "-t", timeout)
	code, printed := runQuietly(t, args)
	if after != nil {
		after.Stop()
	}

	var mine []emulator.Change // changes that the command made
	for _, c := range store.Changes() {
		if c.ClientID == "me" {
			mine = append(mine, c)
		}
	}
	entry, present := store.Get("k")
	applied := len(mine) > 0
	lock := strings.HasPrefix(form.command, "lock ")
	held := applied && mine[len(mine)-1].Cause == "set px" && present && entry.Version.Equal(mine[len(mine)-1].Version)
	state := fmt.Sprintf("exit code %d, %q; changes %+v, the key is %q (%v)", code, printed, store.Changes(), entry.Value, present)
	switch code {
	case 0:
		asked := form.command == "set k v" && present && string(entry.Value) == "v" || form.command == "del k" && !present
		if strings.Contains(form.command, "acquire") || strings.Contains(form.command, "renew") {
			applied = applied && mine[len(mine)-1].Cause == "set px" && strings.Contains(printed, mine[len(mine)-1].Version.String())
		}
		if !applied && !asked {
			return "success without a change of ours: " + state
		}
	case 1, 3, 4, 5, 6, 8, 9, 124:
		if lock && held && form.has == "" {
			return "a lock is left behind: " + state
		}
		if !lock && applied || strings.Contains(form.command, "release") && applied {
			return "it was applied: " + state
		}
		if strings.Contains(form.command, "acquire") && form.has == "v" && !present {
			return "the earlier lease is undone: " + state
		}
	case 11:
		if answered {
			return "the answer said it: " + state
		}
	default:
		return "an unexpected exit code: " + state
	}
	return ""
}

// runQuietly runs sscli in this process and returns its exit code and standard output.
func runQuietly(t *testing.T, args []string) (code int, printed string) {
	return runQuietlyWith(t, "", args)
}

// runQuietlyWith is runQuietly with a given standard input.
func runQuietlyWith(t *testing.T, input string, args []string) (code int, printed string) {
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return f
	}
	a := &app.App{Commands: table(), Topics: help.Topics, Stdin: strings.NewReader(input), Stdout: &terminal.Output{File: open("stdout")}, Stderr: &terminal.Output{File: open("stderr")}, Env: func(string) (string, bool) { return "", false }}
	code = a.Report(runLine(t.Context(), a, "sscli", args))
	name := a.Stdout.Name()
	a.Stdout.Close()
	a.Stderr.Close()
	text, err := os.ReadFile(name)
	said, err2 := os.ReadFile(a.Stderr.Name())
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("standard error: %.2000s", said)
		}
	})
	return code, string(text)
}

// TestOutcomesOfMany: a connection stalls before or after the store has applied the writes of many keys. All keys are
// read back over a new connection, and neither the writes nor the reads take a timeout each. The exit code must agree
// with the keys.
func TestOutcomesOfMany(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	t.Parallel()
	const keys, timeout = 30, 6 * time.Second // for all reads at once, on a machine that has other work
	lines := func(verb, value string) (text string) {
		for i := range keys {
			text += fmt.Sprintf("%s k%d%s\n", verb, i, value)
		}
		return text
	}
	names := strings.Fields(lines("", ""))
	for name, form := range map[string]struct {
		args          []string
		input         string
		before, after int  // exit codes if the store has not applied the writes, and if it has
		holds         bool // the keys exist before
	}{
		"del":                  {args: append([]string{"del"}, names...), before: 11, after: 0, holds: true},
		"del in a batch":       {args: []string{"-"}, input: "del " + strings.Join(names, " ") + "\n", before: 11, after: 0, holds: true},
		"set in a pipeline":    {args: []string{"batch", "-", "--inflight", "64", "--keep-going"}, input: lines("set", " v"), before: 124, after: 0, holds: true},
		"vdel in a pipeline":   {args: []string{"batch", "-", "--inflight", "64", "--keep-going"}, input: lines("vdel", " old"), before: 11, after: 11, holds: true},
		"set one by one":       {args: []string{"batch", "-", "--keep-going"}, input: lines("set", " v"), before: 124, after: 0, holds: true},
		"set in a pipeline NX": {args: []string{"batch", "-", "--inflight", "64", "--keep-going"}, input: lines("set", " v NX"), before: 11, after: 11},
	} {
		for when, action := range map[string]emulator.Action{"before": {Drop: true, NoPuback: true}, "after": {DropReply: true, NoPuback: true}} {
			t.Run(name+"/"+when, func(t *testing.T) {
				t.Parallel()
				store := emulator.Start(t, emulator.Options{Skew: -30 * time.Second}) // makes old versions older than our requests
				if form.holds {
					for _, key := range names {
						if _, err := store.Set(key, "old"); err != nil {
							t.Fatal(err)
						}
					}
				}
				var connections atomic.Int32
				store.RefuseConnect(func(string, string) byte {
					connections.Add(1)
					return 0
				})
				store.Intercept(func(emulator.Request) (now emulator.Action) {
					if connections.Load() == 1 {
						now = action
					}
					return now
				})
				began := time.Now()
				code, printed := runQuietlyWith(t, form.input, append(form.args, "-u", store.URL(), "-t", timeout.String()))
				if took := time.Since(began); took > keys*timeout {
					t.Errorf("took %v, want about two timeouts", took)
				}
				want := form.before
				if when == "after" {
					want = form.after
				}
				if code != want {
					t.Errorf("exit code %d, want %d; printed %q", code, want, printed)
				}
			})
		}
	}
}

// TestLostAnswers: reads of many keys succeed although a store loses one reply in 11.
func TestLostAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	t.Parallel()
	const keys = 50
	var names []string
	var file strings.Builder
	for i := range keys {
		names = append(names, fmt.Sprintf("k%03d", i))
		fmt.Fprintf(&file, "{\"key\":%q,\"value\":\"v\"}\n", names[i])
	}
	same := filepath.Join(t.TempDir(), "same")
	if err := os.WriteFile(same, []byte(file.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"export", "-o", "json"}, {"diff", same}, {"scan", "-o", "raw"}, {"scan", "--long", "-o", "raw"}, {"lock", "list", "-o", "raw"},
		append([]string{"get", "-o", "raw"}, names...),
	} {
		t.Run(strings.TrimSuffix(args[0]+" "+args[1], " "+same), func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t, emulator.Options{ScanPage: 4})
			for _, name := range names {
				if _, err := store.Set(name, "v"); err != nil {
					t.Fatal(err)
				}
			}
			var n atomic.Int32
			store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{DropReply: n.Add(1)%11 == 0} })
			code, printed := runQuietly(t, append(args, "-u", store.URL(), "-t", "2s", "--retry-for", "1m"))
			want := keys
			if args[0] == "diff" {
				want = 0 // diff finds no differences
			}
			if lines := strings.Count(printed, "\n"); code != 0 || lines != want {
				t.Errorf("exit code %d with %d lines, want 0 and %d; printed %q", code, lines, want, printed)
			}
		})
	}
}

// TestMoreKeysThanATimeout: requests for so many keys that they take longer than a timeout, each of which is answered in
// time, are carried out.
func TestMoreKeysThanATimeout(t *testing.T) {
	t.Parallel()
	const timeout, latency, inFlight = 10 * time.Second, time.Second, 64
	const keys = inFlight * int(timeout/latency+1)
	for _, verb := range []string{"get", "del"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t, emulator.Options{Latency: latency})
			var names strings.Builder
			for i := range keys {
				if _, err := store.Set(fmt.Sprint("k", i), "v"); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&names, "k%d\n", i)
			}
			code, printed := runQuietlyWith(t, names.String(), []string{verb, "--keys-from", "-", "-o", "raw", "-u", store.URL(), "-t", timeout.String()})
			if lines := strings.Count(printed, "\n"); code != 0 || lines != keys {
				t.Errorf("exit code %d with %d lines, want 0 and %d; the last ones: %q", code, lines, keys, printed[max(0, len(printed)-500):])
			}
			if n := len(store.Keys()); verb == "del" && n != 0 {
				t.Errorf("%d keys are left", n)
			}
		})
	}
}

// TestManyKeysOfASilentStore: if the store falls silent, the command ends, however many keys are left.
func TestManyKeysOfASilentStore(t *testing.T) {
	t.Parallel()
	const keys, answered = 1000, 100
	for _, verb := range []string{"get", "del"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t)
			var asked atomic.Int32 // requests of this verb
			store.Intercept(func(r emulator.Request) emulator.Action {
				if r.Verb() == strings.ToUpper(verb) {
					asked.Add(1)
				}
				return emulator.Action{Drop: asked.Load() > answered}
			})
			var names strings.Builder
			for i := range keys {
				fmt.Fprintf(&names, "k%d\n", i)
			}
			code, printed := runQuietlyWith(t, names.String(), []string{verb, "--keys-from", "-", "-o", "raw", "-u", store.URL(), "-t", "2s"})
			const inFlight, again = 64, 20 // one of the keys in flight is asked for again until the time is over, not one after the other
			if n := asked.Load(); n > answered+inFlight+again || code != 124 && code != 11 {
				t.Errorf("exit code %d after %d requests; the last lines: %q", code, n, printed[max(0, len(printed)-300):])
			}
		})
	}
}

// TestInterruptedOnce: a signal is reported once, however many requests it ends.
func TestInterruptedOnce(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true} })
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	a := &app.App{Commands: table(), Topics: help.Topics, Stdin: strings.NewReader(""), Stdout: &terminal.Output{File: stderr}, Stderr: &terminal.Output{File: stderr}, Env: func(string) (string, bool) { return "", false }}
	ctx, interrupt := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runLine(ctx, a, "sscli", []string{"get", "a", "b", "-u", store.URL()}) }()
	await.State(t, store, func(s emulator.State) bool { return s.Requests == 2 })
	interrupt(&signals.Interrupted{Signal: syscall.SIGINT})
	if code := a.Report(<-ended); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	printed, err := os.ReadFile(stderr.Name())
	if want := "sscli: get \"a\": interrupted\n"; err != nil || string(printed) != want {
		t.Errorf("printed %q, %v; want %q", printed, err, want)
	}
}

// TestReleaseLostToWaiter: the command of `lock run` has ended, the reply to the release is lost, and another client
// acquires the lock. lock run succeeds with a warning.
func TestReleaseLostToWaiter(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	store.Intercept(func(r emulator.Request) (a emulator.Action) {
		if r.Verb() == wire.VerbVDel {
			a.CutAfter = true
			store.Intercept(nil)
			go store.Set("k", "other")
		}
		return a
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	nothing := []string{"sh", "-c", "true"}
	if runtime.GOOS == "windows" {
		nothing = []string{"cmd", "/c", "exit"}
	}
	cmd := exec.Command(self, append([]string{"lock", "run", "k", "-u", store.URL(), "--"}, nothing...)...)
	cmd.Args[0] = "sscli"
	printed, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(printed), `warning: no reply came to the first release of lock "k"`) {
		t.Errorf("%v, printed %q", err, printed)
	}
}
