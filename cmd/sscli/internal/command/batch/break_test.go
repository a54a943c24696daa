package batch

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/command/basics"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
)

// commands returns the commands that these tests run.
func commands() []app.Command {
	return []app.Command{{Name: "batch", New: New}, {Name: "scan", New: verb.Command(basics.Scan)}}
}

// newApp returns an App with these commands, for a test that provides standard input or creates a batch directly.
func newApp(stdin io.Reader, stdout, stderr *os.File) *app.App {
	a := apptest.NewApp(commands(), nil, stdout, stderr)
	a.Stdin = stdin
	return a
}

// batchLines is the number of keys that a batch sets: line N sets key N.
const batchLines = 300

// A batchReport is what a batch reported about its lines.
type batchReport struct {
	code    int
	resume  int
	counts  map[string]int  // counts in the summary
	applied map[int]bool    // lines with a result or "the key holds this value"
	failed  map[int]float64 // lines with an error, and its code
	ahead   map[int]bool    // lines that the summary names
}

// runBatch runs `sscli batch` in this process and returns what it reported.
func runBatch(t *testing.T, address string, args ...string) batchReport {
	t.Helper()
	code, stdout, stderr := apptest.Run(t, commands(), nil, append([]string{"batch", "-o", "json", "-u", "mqtt://" + address}, args...)...)
	r := batchReport{code: code, applied: make(map[int]bool), failed: make(map[int]float64), ahead: make(map[int]bool)}
	for line := range strings.Lines(stdout + stderr) {
		r.read(t, line)
	}
	return r
}

func (r *batchReport) read(t *testing.T, text string) {
	t.Helper()
	var o struct {
		Op, Key, Message string
		Line, Code       int
		Applied          any
		Resume           int `json:"resume_line"`
		Refused, Unknown int
		Ahead            [][2]int
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	switch o.Op {
	case "set":
		n, err := strconv.Atoi(o.Key)
		if err != nil || o.Applied != true || r.applied[n] {
			t.Errorf("an unexpected result: %s", text)
		}
		r.applied[n] = true
	case "warning":
		if !strings.Contains(o.Message, "the key holds this value") {
			t.Errorf("an unexpected warning: %s", text)
		}
	case "error":
		if _, twice := r.failed[o.Line]; twice || o.Line == 0 {
			t.Errorf("an unexpected error: %s", text)
		}
		r.failed[o.Line] = float64(o.Code)
	case "batch":
		applied, _ := o.Applied.(float64)
		r.resume, r.counts = o.Resume, map[string]int{"applied": int(applied), "refused": o.Refused, "unknown": o.Unknown}
		for _, a := range o.Ahead {
			for n := a[0]; n <= a[1]; n++ {
				r.ahead[n] = true
			}
		}
	default:
		t.Errorf("an unexpected line: %s", text)
	}
}

// check compares the report with the store: exactly the keys of applied lines have new values.
func (r batchReport) check(t *testing.T, holds func(key string) string) {
	t.Helper()
	unknown, refused := 0, 0
	for n := 1; n <= batchLines; n++ {
		now := holds(strconv.Itoa(n)) == newValue(n)
		code, failed := r.failed[n]
		switch {
		case failed && r.applied[n]:
			t.Errorf("line %d is said to be applied and has the error %v", n, code)
		case r.applied[n] && !now:
			t.Errorf("line %d is said to be applied, and the store does not have it", n)
		case code == float64(fault.CodeUnknown):
			unknown++
		case failed:
			if refused++; now {
				t.Errorf("line %d is said not to be applied (%v), and the store has it", n, code)
			}
		case !r.applied[n] && now:
			t.Errorf("nothing is said of line %d, and the store has it", n)
		}
		if beyond := r.applied[n] && r.resume > 0 && n > r.resume; beyond != r.ahead[n] {
			t.Errorf("line %d: said to have been done behind line %d: %v", n, r.resume, r.ahead[n])
		}
		if n < r.resume && !r.applied[n] {
			t.Errorf("the batch is to go on from line %d, and line %d was not applied", r.resume, n)
		}
	}
	if r.counts["applied"] != len(r.applied) || r.counts["unknown"] != unknown || r.counts["refused"] != refused {
		t.Errorf("the summary counts %v, the lines %d applied, %d unknown, %d refused", r.counts, len(r.applied), unknown, refused)
	}
}

func newValue(n int) string { return fmt.Sprintf("new %d", n) }

// writeBatch writes the lines of a batch into a file and returns its name.
func writeBatch(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for n := 1; n <= batchLines; n++ {
		fmt.Fprintf(&text, "set %d %q\n", n, newValue(n))
	}
	name := filepath.Join(t.TempDir(), "batch")
	if err := os.WriteFile(name, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestBatchBreaks: after the connection breaks, a batch reports the true outcome of each line, and another batch
// completes it.
func TestBatchBreaks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		inflight int
		action   emulator.Action
		again    bool // the connection breaks a second time
		args     []string
	}{
		{"before a request", 32, emulator.Action{Cut: true}, false, nil},
		{"behind a request", 32, emulator.Action{CutAfter: true}, false, nil},
		{"one at a time", 1, emulator.Action{CutAfter: true}, false, nil},
		{"a reply gets lost", 8, emulator.Action{DropReply: true}, false, nil},
		{"a request gets lost", 8, emulator.Action{Drop: true}, false, nil},
		{"a disconnect", 256, emulator.Action{Disconnect: 0x8B}, false, nil},
		{"and it goes on", 32, emulator.Action{Cut: true}, true, []string{"--keep-going"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t)
			for n := 1; n <= batchLines; n += 2 { // the other keys are missing: a lost write to one of them leaves no trace
				if _, err := store.Set(strconv.Itoa(n), "old"); err != nil {
					t.Fatal(err)
				}
			}
			var requests atomic.Int32
			store.Intercept(func(emulator.Request) emulator.Action {
				switch n := requests.Add(1); {
				case n == 100, n == 400 && tt.again:
					return tt.action
				case n%3 == 0:
					return emulator.Action{PubackLast: true}
				}
				return emulator.Action{}
			})
			holds := func(key string) string {
				e, _ := store.Get(key)
				return string(e.Value)
			}
			file := writeBatch(t)
			args := append([]string{file, "-t", "2s", "--inflight", strconv.Itoa(tt.inflight)}, tt.args...)
			r := runBatch(t, store.Addr().String(), args...)
			r.check(t, holds)
			if tt.args != nil {
				if r.resume != 0 || len(r.applied)+len(r.failed) != batchLines {
					t.Errorf("%d lines have an outcome, to go on from line %d; want all", len(r.applied)+len(r.failed), r.resume)
				}
				return
			}
			if len(r.failed) > 0 && r.resume == 0 || len(r.failed) == 0 && len(r.applied) != batchLines {
				t.Fatalf("%d applied, %d failed, to go on from line %d", len(r.applied), len(r.failed), r.resume)
			}
			store.Intercept(nil)
			if r.resume > 0 {
				again := runBatch(t, store.Addr().String(), file, "--inflight", strconv.Itoa(tt.inflight), "--from-line", strconv.Itoa(r.resume))
				if again.code != 0 || len(again.applied) != batchLines-r.resume+1 {
					t.Errorf("the second batch: exit code %d, %d lines applied, want %d", again.code, len(again.applied), batchLines-r.resume+1)
				}
			}
			for n := 1; n <= batchLines; n++ {
				if got := holds(strconv.Itoa(n)); got != newValue(n) {
					t.Errorf("in the end key %d is %q", n, got)
				}
			}
		})
	}
}

// TestBatchSendsNothingAfterLoss: two replies are lost while a third line waits for its turn. The third line is not
// sent, because the batch ends with the error of the first.
func TestBatchSendsNothingAfterLoss(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{DropReply: r.Verb() == "SET"} })
	script := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(script, []byte("set a 1 NX\nset b 1 NX\nset c 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runBatch(t, store.Addr().String(), "--inflight", "2", "-t", "2s", script)
	if _, sent := store.Get("c"); sent || r.code != 11 || r.resume != 1 || r.counts["unknown"] != 2 {
		t.Errorf("line 3 was sent: %v; %+v", sent, r)
	}
}

// TestBatchShowsResults checks that a batch writes its results before it waits, whatever it waits for.
func TestBatchShowsResults(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"sleep 1h", "get slow", "set a 2\nget slow", "get slow\nget slow", "get slow\ncall GET b", ""} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t)
			store.Intercept(func(r emulator.Request) emulator.Action { return emulator.Action{DropReply: r.Key() == "slow"} })
			lines, stdin := io.Pipe()
			out, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer stderr.Close()
			ctx, cancel := context.WithCancel(t.Context())
			a := newApp(lines, stdout, stderr)
			ended := make(chan error)
			go func() {
				defer stdout.Close()
				ended <- cmdline.Run(ctx, a, []string{"batch", "-", "--inflight", "4", "-u", "mqtt://" + store.Addr().String()})
			}()
			if _, err := io.WriteString(stdin, "set a 1\n"+then+"\n"); err != nil {
				t.Fatal(err)
			}
			result := bufio.NewReader(out)
			for range 1 + strings.Count(then, "set ") {
				if line, err := result.ReadString('\n'); err != nil || !strings.HasPrefix(line, "OK\t") {
					t.Errorf("got %q, %v", line, err)
				}
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("the batch ended well")
			}
			stdin.Close()
		})
	}
}

// TestBatchErrorWithLinesUnderWay: results are printed for lines after a failed one that were already in flight.
func TestBatchErrorWithLinesUnderWay(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Key() == "3" {
			return emulator.Action{Rewrite: func(a *emulator.Answer) { a.Payload = []byte("-ERR no\r\n") }, DelayReply: time.Hour}
		}
		return emulator.Action{}
	})
	file := writeBatch(t)
	ended := make(chan batchReport)
	go func() { ended <- runBatch(t, store.Addr().String(), file, "--inflight", "8", "-t", "2h") }()
	// Eight lines are in flight, and their results wait for line 3.
	await.State(t, store, func(s emulator.State) bool { return s.Delayed == 1 && s.Requests >= 10 })
	store.FastForward(time.Hour)
	r := <-ended
	if r.code != fault.CodeStore || r.resume != 3 || r.failed[3] != float64(fault.CodeStore) || len(r.failed) != 1 {
		t.Errorf("exit code %d, to go on from line %d, errors %v; want line 3 alone", r.code, r.resume, r.failed)
	}
	for n := 4; n <= 10; n++ {
		if !r.applied[n] || !r.ahead[n] {
			t.Errorf("line %d: applied %v, named %v", n, r.applied[n], r.ahead[n])
		}
	}
}

// TestBatchMosquittoDies is the same with an independent broker, which dies while the store lives.
func TestBatchMosquittoDies(t *testing.T) {
	broker := mosquitto.Start(t, "set_tcp_nodelay true\nmax_queued_messages 0", mosquitto.Anonymous)
	address := broker.Addresses[0]
	reached := make(chan struct{})
	var writes atomic.Int32
	store, err := emulator.Attach(t.Context(), emulator.AttachOptions{
		Address: address, ClientID: "store-" + client.NewClientID(),
		Policy: emulator.PolicyFunc(func(a emulator.Access) bool {
			if a.Method == emulator.Write && writes.Add(1) == 150 {
				close(reached)
			}
			return true
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	file := writeBatch(t)
	ended := make(chan batchReport)
	go func() { ended <- runBatch(t, address, file, "--inflight", "16", "-t", "3s") }()
	<-reached
	broker.Restart(t)
	r := <-ended
	s, err := client.Dial(t.Context(), client.Options{Address: address, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	holds := func(key string) string {
		got, err := s.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return string(got.Value)
	}
	r.check(t, holds)
	if r.resume > 0 {
		if again := runBatch(t, address, file, "--inflight", "16", "--from-line", strconv.Itoa(r.resume)); again.code != 0 {
			t.Errorf("the second batch: exit code %d", again.code)
		}
	} else if len(r.applied) != batchLines {
		t.Errorf("%d lines applied, and no line to go on from", len(r.applied))
	}
	for n := 1; n <= batchLines; n++ {
		if got := holds(strconv.Itoa(n)); got != newValue(n) {
			t.Errorf("in the end key %d is %q", n, got)
		}
	}
}

// TestResumeAfterLostOutput: if the result of a write cannot be printed, the batch ends, and can be resumed after that
// write, so that each line is applied once.
func TestResumeAfterLostOutput(t *testing.T) {
	t.Parallel()
	for _, inflight := range []string{"1", "4"} {
		store := emulator.Start(t)
		name := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(name, []byte("set a 1 NX\nset b 1 NX\nset c 1 NX\nset d 1 NX\nset e 1 NX\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		read, closed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		read.Close()
		stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		a := newApp(nil, closed, stderr)
		code := a.Report(cmdline.Run(t.Context(), a, []string{"batch", name, "--inflight", inflight, "-u", store.URL(), "-o", "json"}))
		said, err := os.ReadFile(stderr.Name())
		if err != nil || code != 12 {
			t.Fatalf("exit code %d, %v: %s", code, err, said)
		}
		var sum struct {
			Applied, Resume int
			Ahead           [][2]int
			NotRun          int `json:"not_run"`
		}
		lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(said), "resume_line", "resume")), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &sum); err != nil {
			t.Fatal(err)
		}
		if sum.Applied+sum.NotRun != 5 || len(apptest.Contents(store)) != sum.Applied || sum.Resume+len(sum.Ahead) != sum.Applied+1 {
			t.Errorf("--inflight %s: %d applied, %d in the store, %d not run, continue with %d: %s", inflight, sum.Applied, len(apptest.Contents(store)), sum.NotRun, sum.Resume, said)
		}
		code, stdout, errors := apptest.Run(t, commands(), nil, "batch", name, "-u", store.URL(), "--from-line", strconv.Itoa(sum.Resume))
		if code != 0 && len(sum.Ahead) == 0 || len(apptest.Contents(store)) != 5 {
			t.Errorf("--inflight %s, continued: exit code %d: %s%s", inflight, code, stdout, errors)
		}
		closed.Close()
		stderr.Close()
	}
}
