package lock

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/systext"
)

// recording is the output of watch -o json: job-1 holds the lock for 15 s, and renews it once.
const recording = `{"op":"initial","key":"deploy","found":false,"time":"2023-10-03T23:07:31.000Z"}
{"op":"set","key":"deploy","value":"job-1","version":{"hlc":"1696374452000:1:StateStore"},"time":"2023-10-03T23:07:32.000Z"}
{"op":"set","key":"other","value":"1","version":{"hlc":"1696374453000:1:StateStore"},"time":"2023-10-03T23:07:33.000Z"}
{"op":"set","key":"deploy","value":"job-1","version":{"hlc":"1696374455000:1:StateStore"},"time":"2023-10-03T23:07:35.000Z"}
{"op":"delete","key":"deploy","version":{"hlc":"1696374455000:1:StateStore"},"time":"2023-10-03T23:07:50.000Z"}
{"op":"end","reason":"interrupted","events":4,"time":"2023-10-03T23:08:00.000Z"}
`

// traceLocks runs lock trace; store nil = without a broker.
func traceLocks(t *testing.T, store *emulator.Server, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	env := make(map[string]string)
	if store != nil {
		env["SSCLI_URL"] = store.URL()
	}
	return apptest.Run(t, []app.Command{{Name: "trace", New: newTrace}}, env, append([]string{"trace"}, args...)...)
}

// write writes a file in a new directory and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRecording(t *testing.T) {
	from := write(t, "watch.jsonl", recording)
	for _, tt := range []struct {
		name, args string
		want       []string // the first two columns of each line
	}{
		{"all keys", "-o raw", []string{"free deploy", "acquired deploy", "held other", "renewed deploy", "expired deploy", "end recording"}},
		{"a lock", "deploy -o raw", []string{"free deploy", "acquired deploy", "renewed deploy", "expired deploy", "end recording"}},
		{"a guarded key", "deploy --guards other -o raw", []string{"free deploy", "acquired deploy", "written other", "renewed deploy", "expired deploy", "end recording"}},
		{"a count", "deploy -n 2 -o raw", []string{"free deploy", "acquired deploy", "renewed deploy", "end count"}},
		{"a long lease", "deploy --ttl 1m -o raw", []string{"free deploy", "acquired deploy", "renewed deploy", "released deploy", "end recording"}},
		{"renewals are merged", "deploy -o human", []string{"free deploy", "acquired deploy", "expired deploy", "end recording,"}},
		{"the last renewal is printed", "deploy -n 2 -o human", []string{"free deploy", "acquired deploy", "renewed deploy", "end count,"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := traceLocks(t, nil, append(strings.Fields(tt.args), "--from", from)...)
			var got []string
			for line := range strings.Lines(stdout) {
				words := strings.Fields(line)
				if strings.HasSuffix(tt.args, "human") {
					words = words[1:] // drop the time
				}
				got = append(got, words[0]+" "+words[1])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || code != 0 {
				t.Errorf("exit code %d, %s(-want +got):\n%s", code, stderr, diff)
			}
		})
	}
}

// TestPicture: --svg draws everything that was printed, even if -n ends the trace.
func TestPicture(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "deploy.svg")
	code, _, stderr := traceLocks(t, nil, "deploy", "-n", "1", "--from", write(t, "watch.jsonl", recording), "--svg", svg)
	picture, err := os.ReadFile(svg)
	if err != nil || code != 0 || !strings.Contains(string(picture), "<title>Lock deploy</title>") || !strings.Contains(string(picture), "job-1") {
		t.Errorf("exit code %d, %v, %s\n%s", code, err, stderr, picture)
	}
}

// TestDamagedRecording: a recording that was cut off is shown up to its last complete line. What comes before a line
// that cannot be read is printed. A recording without an event is an error, and no picture of nothing is written.
func TestDamagedRecording(t *testing.T) {
	lines := strings.SplitAfter(recording, "\n")
	for _, tt := range []struct {
		name, recording, args, stdout, stderr string
		code                                  int
	}{
		{"cut off", recording[:len(recording)-len(lines[5])-20], "deploy -o human", "(free for at least 1s)", "ends in the middle of line 5, which is left out", 0},
		{"cut off", lines[0] + lines[1] + lines[3][:9], "deploy -o raw", "end\trecording\n", "ends in the middle of line 3, which is left out", 0},
		{"blank lines", "\n" + strings.ReplaceAll(recording, "\n", "\r\n\r\n"), "deploy -o raw", "expired\tdeploy", "", 0},
		{"damaged", lines[0] + lines[1][:9] + "\n" + lines[3], "deploy -o raw", "free\tdeploy", ":2: expected a JSON object", 2},
		{"empty", "", "-o raw", "", "has no event of a lock\n", 2},
		{"only an end", lines[5], "-o raw", "", "has no event of a lock\n", 2},
		{"another lock", recording, "build -o raw", "", "has no event of lock \"build\"\n", 2},
		{"one of two", recording, "build deploy -o raw", "expired\tdeploy", "has no event of lock \"build\"\n", 0},
	} {
		svg := filepath.Join(t.TempDir(), "deploy.svg")
		args := append(strings.Fields(tt.args), "--from", write(t, "watch.jsonl", tt.recording), "--svg", svg)
		code, stdout, stderr := traceLocks(t, nil, args...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
			t.Errorf("%s, trace %s: exit code %d, %q, %q, want %d, %q, %q", tt.name, tt.args, code, stdout, stderr, tt.code, tt.stdout, tt.stderr)
		}
		if _, err := os.Stat(svg); (err == nil) != (code == 0) {
			t.Errorf("%s: exit code %d, but the picture: %v", tt.name, code, err)
		}
	}
}

// TestGrowingRecording: each event of a recording that is still written is printed as it comes, and the end of the
// context ends the wait for the next.
func TestGrowingRecording(t *testing.T) {
	in, recorder := io.Pipe()
	stdout, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	a := apptest.NewApp([]app.Command{{Name: "trace", New: newTrace}}, nil, out, stderr)
	a.Stdin = in
	ctx, cancel := context.WithCancelCause(t.Context())
	code := make(chan int)
	go func() {
		defer out.Close()
		code <- a.Report(cmdline.Run(ctx, a, []string{"trace", "--from", "-", "-o", "raw"}))
	}()
	printed := bufio.NewScanner(stdout)
	for line := range strings.Lines(recording) {
		if strings.Contains(line, `"op":"end"`) {
			break
		}
		if _, err := io.WriteString(recorder, line); err != nil {
			t.Fatal(err)
		}
		if !printed.Scan() {
			t.Fatalf("nothing was printed for %s", line)
		}
	}
	cancel(&signals.Interrupted{Signal: syscall.SIGINT})
	if !printed.Scan() || printed.Text() != "end\tinterrupted" {
		t.Errorf("the last line is %q, %v", printed.Text(), printed.Err())
	}
	if code := <-code; code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}

// TestWatch: --for ends the trace of a store, and --timeline draws the holder.
func TestWatch(t *testing.T) {
	store := emulator.Start(t)
	apptest.Put(t, store, "build", "job-7")
	code, stdout, stderr := traceLocks(t, store, "build", "build", "--for", "1ms", "--timeline", "-o", "raw")
	for _, want := range []string{"held\tbuild\tjob-7\t", "end\tfor\n", "hold\tbuild\tjob-7\t"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if want := "sscli: waiting for changes of lock \"build\" for 1ms\n"; code != 0 || stderr != want {
		t.Errorf("exit code %d, %q, want 0 and %q", code, stderr, want)
	}
}

// TestTracePattern: a name that looks like a pattern leads to the command that finds names.
func TestTracePattern(t *testing.T) {
	_, _, stderr := traceLocks(t, emulator.Start(t), "locks/*", "--guards", "keys/*", "--for", "1ms", "-o", "raw")
	if n := strings.Count(stderr, "for a pattern: lock list 'locks/*'\n"); n != 1 || strings.Contains(stderr, "list 'keys/*'") {
		t.Errorf("%d notes: %q", n, stderr)
	}
}

func TestUsage(t *testing.T) {
	text := write(t, "story.sh", "rm -f traced\n")
	for _, tt := range []struct{ args, want string }{
		{"", "missing NAME"},
		{"build --guards build", `"build" is a lock and --guards: use only one of them`},
		{"build --ttl soon", `--ttl: "soon": expected a duration such as 500ms, 10s or 2m`},
		{"build --for 0", "--for 0: must be greater than 0"},
		{"build -n -1", `--count "-1": expected a whole number of at least 0`},
		{"--from x --for 1s", "--from and --for: use only one of them"},
		{"--from nowhere.jsonl", "--from: open nowhere.jsonl: no such file or directory"},
		{"build --svg nowhere/build.svg", "--svg: stat nowhere: no such file or directory"},
		{"--from " + text, "--from: " + text + ":1: expected a JSON object, as lock trace -o json and watch -o json print"},
	} {
		code, stdout, stderr := traceLocks(t, nil, strings.Fields(tt.args)...)
		if code != 2 || stdout != "" || !strings.HasPrefix(systext.Unix(stderr), "sscli: "+tt.want) {
			t.Errorf("trace %s: exit code %d, %q, %q, want 2 and %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}
