//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

// streamCases has command lines for each command. They use the store of TestStreams: the keys k, other and dd, a data
// set, and the lock busy. Each command ends by itself. A word - means that the command reads standard input.
var streamCases = map[string][]string{
	"get":                   {"get k", "get k other", "get missing", "get k -f OUT"},
	"set":                   {"set k w", "set k -", "set k -f -", "set k w NX"},
	"del":                   {"del k", "del missing", "del --match o* --yes"},
	"scan":                  {"scan", "scan -l"},
	"vdel":                  {"vdel k v", "vdel k -"},
	"watch":                 {"watch k --for 10ms", "watch k --for 10ms -- true", "watch --keys-from - --for 10ms"},
	"lock run":              {"lock run mine -- true", "lock run mine -v -- false", "lock run busy --try -- true"},
	"lock status":           {"lock status busy", "lock status free"},
	"lock list":             {"lock list"},
	"lock trace":            {"lock trace busy --for 10ms", "lock trace busy --from -"},
	"lock break":            {"lock break busy --yes", "lock break free --yes"},
	"lock hold":             {"lock hold busy --try"},
	"lock acquire":          {"lock acquire mine --holder me", "lock acquire busy --holder me --try"},
	"lock renew":            {"lock renew busy --holder holder --ttl 1m"},
	"lock release":          {"lock release busy --holder holder", "lock release busy --holder me"},
	"edit":                  {"edit k"},
	"export":                {"export", "export -f OUT"},
	"import":                {"import JSONL", "import -"},
	"diff":                  {"diff JSONL", "diff -"},
	"apply":                 {"apply JSONL", "apply -", "apply JSONL --dry-run"},
	"dataset load":          {"dataset load dd CSV", "dataset load dd -"},
	"dataset show":          {"dataset show dd", "dataset show dd -o csv"},
	"dataset diff":          {"dataset diff dd CSV", "dataset diff dd -"},
	"dataset match":         {"dataset match dd id=1"},
	"dataset check":         {"dataset check FLOW"},
	"top":                   {"top"},
	"explain":               {"explain k"},
	"doctor":                {"doctor", "doctor --write"},
	"check":                 {"check k --max-age 1h", "check k -o nagios", "check k -o prometheus"},
	"ping":                  {"ping -n 1"},
	"hlc parse":             {"hlc parse 1696374425000:0:node-1"},
	"hlc now":               {"hlc now"},
	"hlc compare":           {"hlc compare 1696374425000:0:node-1 1696374425000:1:node-1"},
	"call":                  {"call GET k", "call SET k w"},
	"keynotify":             {"keynotify k"},
	"bench":                 {"bench -n 10"},
	"serve":                 {"serve -v -- true", "serve -- false", "serve --listen nonsense", "serve --data-check OUT"},
	"forward":               {"forward"},
	"pod":                   {"pod"},
	"gateway":               {"gateway --listen 127.0.0.1:0 -v -- true"},
	"context set":           {"context set c --url mqtt://127.0.0.1"},
	"context list":          {"context list"},
	"context use":           {"context use none"},
	"context show":          {"context show"},
	"context rm":            {"context rm c"},
	"shell":                 {"shell"},
	"batch":                 {"batch LINES", "batch LINES --inflight 4", "batch -", "-"},
	"completion bash":       {"completion bash"},
	"completion zsh":        {"completion zsh"},
	"completion fish":       {"completion fish"},
	"completion powershell": {"completion powershell"},
	"man":                   {"man OUT.d"},
	"policy check":          {"policy check"},
	"policy can":            {"policy can"},
	"policy table":          {"policy table"},
	"policy test":           {"policy test"},
	"policy who":            {"policy who"},
	"policy diff":           {"policy diff"},
	"policy suggest":        {"policy suggest"},
	"version":               {"version", "--version"},
	"help":                  {"help", "help get", "help exit-codes", "get --help"},
}

// A stream is the state of one standard stream of a command.
type stream int

const (
	streamRead stream = iota // read to its end; standard input contains the line k
	streamGone               // a pipe that nobody reads
	streamShut               // closed
)

// A streamRun is a run of sscli with its standard streams.
type streamRun struct {
	args                  []string
	env                   []string
	stdin, stdout, stderr stream
}

// run runs sscli, and returns its exit code and the output that could be read.
func (r streamRun) run(t *testing.T, input string) (code int, stdout, stderr string) {
	t.Helper()
	var files [3]*os.File
	var reading sync.WaitGroup
	var out [3]bytes.Buffer
	var ours []*os.File
	for fd, state := range []stream{r.stdin, r.stdout, r.stderr} {
		if state == streamShut {
			continue
		}
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		files[fd] = to
		switch {
		case fd == 0:
			files[fd] = from
			reading.Go(func() {
				_, _ = io.WriteString(to, input) // fails if the command does not read its input
				to.Close()
			})
		case state == streamGone:
			from.Close()
		default:
			reading.Go(func() {
				_, _ = out[fd].ReadFrom(from)
				from.Close()
			})
		}
		ours = append(ours, files[fd])
	}
	p, err := os.StartProcess(testProgram(t), append([]string{"sscli"}, r.args...), &os.ProcAttr{Env: r.env, Files: files[:]})
	for _, f := range ours {
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	state, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal()), out[1].String(), out[2].String()
	}
	return state.ExitCode(), out[1].String(), out[2].String()
}

// TestStreams checks what each command does if one of its standard streams is closed, or if nobody reads its output.
func TestStreams(t *testing.T) {
	for path, cmd := range leafCommands(cmdline.NewRoot(newApp()), "") {
		lines := streamCases[path]
		if lines == nil && !cmd.IsAdditionalHelpTopicCommand() {
			t.Errorf("%s has no command line in streamCases", path)
		}
		_, logs := cmd.Annotations[app.LogsResults]
		for _, line := range lines {
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				testStreams(t, line, logs)
			})
		}
	}
}

// leafCommands returns the commands that have no subcommands, by path.
func leafCommands(root *cobra.Command, path string) map[string]*cobra.Command {
	found := make(map[string]*cobra.Command)
	for _, c := range root.Commands() {
		below := strings.TrimSpace(path + " " + c.Name())
		if !c.HasSubCommands() {
			found[below] = c
		}
		for name, c := range leafCommands(c, below) {
			found[name] = c
		}
	}
	return found
}

func testStreams(t *testing.T, line string, logs bool) {
	dir := t.TempDir()
	files := map[string]string{
		"JSONL": `{"op":"get","key":"k","found":true,"value":"new"}` + "\n", "CSV": "id,name\n1,b\n",
		"LINES": "get k\nset k new\nget k\n", "FLOW": "{}\n", "OUT": "", "OUT.d": "",
	}
	words := strings.Fields(line)
	for i, word := range words {
		if content, ok := files[word]; ok {
			words[i] = filepath.Join(dir, word)
			if content != "" {
				if err := os.WriteFile(words[i], []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	input := "k\n"
	switch words[0] {
	case "import", "diff", "apply":
		input = files["JSONL"]
	case "dataset":
		input = files["CSV"]
	case "batch", "-":
		input = files["LINES"]
	}
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", "EDITOR=true", "VISUAL=", "TERM=dumb",
		"SSCLI_CONFIG="+filepath.Join(dir, "config.yaml"), "XDG_STATE_HOME="+dir)
	var s *emulator.Server // of the last run
	prepare := func() []string {
		t.Helper()
		s = emulator.Start(t, emulator.Options{})
		for key, value := range map[string]string{"k": "v", "other": "o", "dd": `{"id":1,"name":"a"}` + "\n", "busy": "holder"} {
			if _, err := s.Set(key, value); err != nil {
				t.Fatal(err)
			}
		}
		return append(env, "SSCLI_URL="+s.URL())
	}
	run := func(stdin, stdout, stderr stream) (int, string, string) {
		t.Helper()
		return streamRun{words, prepare(), stdin, stdout, stderr}.run(t, input)
	}
	want, out, _ := run(streamRead, streamRead, streamRead)
	for _, state := range []stream{streamShut, streamGone} {
		if code, shown, _ := run(streamRead, streamRead, state); code != want || (shown == "") != (out == "") {
			t.Errorf("standard error %d: exit code %d, %q, want %d, %q", state, code, shown, want, out)
		}
	}
	wantGone := want
	if (out != "" || words[0] == "watch") && !logs { // watch ends when the reader of its command's output goes away
		wantGone = fault.CodeOutput
	}
	if slices.Contains(words, "nagios") { // 0 to 3, whatever happens
		wantGone = 3
	}
	if code, _, stderr := run(streamRead, streamGone, streamRead); code != wantGone {
		t.Errorf("nobody reads standard output: exit code %d, want %d\n%s", code, wantGone, stderr)
	} else if _, held := s.Get("mine"); held {
		t.Error("nobody reads standard output: the lock is still held")
	}
	if code, _, stderr := run(streamRead, streamShut, streamRead); code != want {
		t.Errorf("standard output is closed: exit code %d, want %d\n%s", code, want, stderr)
	}
	if slices.Contains(words, "-") {
		names := []string{"-"}
		if !slices.Contains([]string{"-", "set k -", "vdel k -"}, line) { // where - is the name of a file
			names = append(names, "/dev/stdin")
		}
		for _, name := range names {
			named := slices.Clone(words)
			named[slices.Index(named, "-")] = name
			code, _, stderr := streamRun{named, prepare(), streamShut, streamRead, streamRead}.run(t, input)
			if code != fault.CodeUsage || !strings.Contains(stderr, "standard input is closed") || s.State().Requests > 0 {
				t.Errorf("%s is closed: exit code %d, %d requests\n%s", name, code, s.State().Requests, stderr)
			}
		}
	} else if code, _, stderr := run(streamShut, streamRead, streamRead); code != want {
		t.Errorf("standard input is closed: exit code %d, want %d\n%s", code, want, stderr)
	}
}

// TestNullDevice: a standard stream that is the null device is used, although some programs pass the null device in
// place of a closed stream.
func TestNullDevice(t *testing.T) {
	s := emulator.Start(t, emulator.Options{})
	open := func(flag int) *os.File {
		f, err := os.OpenFile(os.DevNull, flag, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	both := open(os.O_RDWR)
	for name, files := range map[string][]*os.File{
		"one direction": {open(os.O_RDONLY), open(os.O_WRONLY), os.Stderr},
		"output alone":  {open(os.O_RDONLY), open(os.O_RDWR), os.Stderr},
		"as a daemon":   {both, both, both},
		"as Python":     {open(os.O_RDONLY), both, both},
		"as Node.js":    {open(os.O_RDONLY), open(os.O_RDWR), open(os.O_RDWR)},
	} {
		p, err := os.StartProcess(testProgram(t), []string{"sscli", "-u", s.URL(), "set", name, "-"}, &os.ProcAttr{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		state, err := p.Wait()
		if _, found := s.Get(name); err != nil || state.ExitCode() != 0 || !found {
			t.Errorf("%s: %v, %v, the key is set: %t", name, err, state, found)
		}
	}
}

// TestLocksEndFirst: a command that holds a lock releases it when its output cannot be written.
func TestLocksEndFirst(t *testing.T) {
	for _, test := range []struct {
		line           string
		stdout, stderr stream
		want           int
	}{
		{"lock hold mine", streamGone, streamRead, fault.CodeOutput},
		{"lock hold mine", streamGone, streamGone, fault.CodeOutput},
		{"lock acquire mine --holder me", streamGone, streamGone, fault.CodeOutput},
		{"lock run mine -v -- sh -c EXIT", streamGone, streamGone, 3},
		{"lock run mine -v -- sh -c EXIT", streamShut, streamShut, 3},
	} {
		t.Run(test.line, func(t *testing.T) {
			t.Parallel()
			s := emulator.Start(t, emulator.Options{})
			words := strings.Fields(test.line)
			if last := len(words) - 1; words[last] == "EXIT" {
				words[last] = "exit 3"
			}
			env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", "SSCLI_URL="+s.URL())
			code, _, stderr := streamRun{words, env, streamShut, test.stdout, test.stderr}.run(t, "")
			if _, held := s.Get("mine"); code != test.want || held {
				t.Errorf("exit code %d, want %d; the lock is held: %t\n%s", code, test.want, held, stderr)
			}
		})
	}
}

// TestServersOutliveTheirReader: a server and `apply --every` keep running when nobody reads their log, until a signal
// ends them.
func TestServersOutliveTheirReader(t *testing.T) {
	source := filepath.Join(t.TempDir(), "keys.jsonl")
	if err := os.WriteFile(source, []byte(`{"op":"get","key":"k","found":true,"value":"v"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	from, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from.Close()
	defer gone.Close()
	ready, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	for _, test := range []struct {
		line   string
		stdout *os.File
		serves func(*emulator.Server)
	}{
		{"apply " + source + " --every 50ms -v", gone, func(s *emulator.Server) {
			for i := range 2 {
				if _, err := s.Set("k", "drift"); err != nil {
					t.Fatal(err)
				}
				for e, _ := s.Get("k"); string(e.Value) != "v"; e, _ = s.Get("k") {
					before := s.State().Requests
					if err := s.Await(t.Context(), func(st emulator.State) bool { return st.Requests > before }); err != nil {
						t.Fatal(i, err)
					}
				}
			}
		}},
		{"gateway --listen 127.0.0.1:0 -v", gone, func(s *emulator.Server) {
			if err := s.Await(t.Context(), func(st emulator.State) bool { return st.Clients > 0 }); err != nil {
				t.Fatal(err)
			}
		}},
		{"serve --listen 127.0.0.1:0 -v", stdout, func(*emulator.Server) {
			url, err := bufio.NewReader(ready).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if code, _, stderr := (streamRun{args: []string{"-u", strings.TrimSpace(url), "get", "k"}}).run(t, ""); code != 1 {
					t.Errorf("get: exit code %d\n%s", code, stderr)
				}
			}
		}},
	} {
		s := emulator.Start(t, emulator.Options{})
		args := append([]string{"sscli"}, strings.Fields(test.line)...)
		p, err := os.StartProcess(testProgram(t), args, &os.ProcAttr{Files: []*os.File{nil, test.stdout, gone}, Env: append(os.Environ(), "SSCLI_URL="+s.URL())})
		if err != nil {
			t.Fatal(err)
		}
		test.serves(s)
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("%s: %v", test.line, err)
		}
		state, err := p.Wait()
		if err != nil || !state.Sys().(syscall.WaitStatus).Signaled() && state.ExitCode() != 143 {
			t.Errorf("%s: %v, %v, want SIGTERM", test.line, state, err)
		}
	}
}
