package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/basics"
	"github.com/sscli/sscli/cmd/sscli/internal/command/lock"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/repl"
)

// A user types entries into a shell, and leaves after the last one. It stands in for the line editor of the shell.
type user struct {
	entries []string
	before  map[string]func() // called while the shell waits for this entry
	prompts []string          // the prompt that the shell printed for each entry
	lost    chan struct{}     // receives a value when the shell reports a lost connection during an entry
}

func (u *user) ReadEntry(_ context.Context, prompt string) (string, error) {
	u.prompts = append(u.prompts, prompt)
	if len(u.entries) == 0 {
		return "", io.EOF
	}
	entry := u.entries[0]
	u.entries = u.entries[1:]
	if do := u.before[entry]; do != nil {
		do()
	}
	return entry, nil
}

func (u *user) Interrupt() bool  { return false }
func (u *user) SetPrompt(string) {}
func (u *user) Close() error     { return nil }
func (u *user) Above(write func()) {
	write()
	u.lost <- struct{}{}
}

// newShell returns a shell that reads from u and is connected to a store. It prints in human form.
func newShell(t *testing.T, store *emulator.Server, u *user) *shell {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	commands := []app.Command{{Name: "get", New: verb.Command(basics.Get)}, {Name: "set", New: verb.Command(basics.Set)}, {Name: "lock", New: lock.New}, {Name: "shell", New: New}}
	a := apptest.NewApp(commands, map[string]string{"SSCLI_URL": store.URL()}, open("stdout"), open("stderr"))
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(flags)
	if err := flags.Set("output", "human"); err != nil {
		t.Fatal(err)
	}
	if err := a.Configure(flags); err != nil {
		t.Fatal(err)
	}
	history, err := repl.OpenHistory("")
	if err != nil {
		t.Fatal(err)
	}
	c := &connection{settings: a.Settings, limit: complete.Limit(a), keys: make(keyMemory), locks: make(keyMemory)}
	if err := a.WithBroker(func(o client.Options) error { c.options = o; return nil }); err != nil {
		t.Fatal(err)
	}
	c.options.Trace = c.tap.print
	a.Shell = c
	t.Cleanup(func() {
		if c.session != nil {
			_ = c.session.Close()
		}
	})
	u.lost = make(chan struct{}, 1)
	return &shell{app: a, conn: c, editor: u, history: history}
}

// printed returns the output of a shell without the greeting.
func printed(t *testing.T, s *shell) (stdout, stderr string) {
	t.Helper()
	var texts [2]string
	for i, f := range []*terminal.Output{s.app.Stdout, s.app.Stderr} {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if _, rest, ok := strings.Cut(texts[1], "Ctrl-D to leave.\n"); ok {
		texts[1] = rest
	}
	return texts[0], texts[1]
}

// TestLines: lines with settings for later lines or for themselves, and lines that are refused.
func TestLines(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "a", "1")
	for _, tt := range []struct {
		lines          string // separated by |
		stdout, stderr string // stderr: a substring; "" = nothing
	}{
		{".timeout|.timeout 2s|.timeout", "10s\n2s\n", ""},
		{".timeout 2s|.timeout 5|.TIMEOUT", "2s\n", `sscli: .timeout: "5" has no unit: 5ms or 5s?`},
		{".output|.output raw|.output|get a", "human\nraw\n1", ""},
		{".output xml|.output", "human\n", "try: help output"},
		{".output raw json|.output", "human\n", "too many words: expected .output [FORM]"},
		{".trace|.trace on|.trace|.trace off|.trace|get missing", "off\non\noff\n(nil)\n", ""},
		{".trace on|get missing", "(nil)\n", "-> PUBLISH"},
		{".trace maybe|.trace", "off\n", `.trace "maybe": must be on or off`},
		{".outptu json", "", "unknown dot-command \".outptu\"\n  try: .output [FORM]\n(exit code 2)"},
		{".nothing", "", "try: .help"},
		{"get missing -o template={{.found}}|get missing", "false\n(nil)\n", ""},
		{"get missing --trace|get missing", "(nil)\n(nil)\n", "<- PUBLISH"},
		{"get missing -u mqtt://h", "", "sscli: --url on a line: a shell keeps one connection\n  try: leave the shell, then sscli --url ... shell\n(exit code 2)"},
		{"get missing -c lab", "", "sscli: --context on a line"},
		{"set a -", "", "the shell itself reads standard input"},
		{"shell", "", "sscli: shell cannot run in a shell"},
		{"set a", "", "try: set KEY VALUE [NX|NEX] [PX MS]  (help set)\n(exit code 2)"},
		{"--frob", "", "unknown flag: --frob\n  try: help\n(exit code 2)"},
		{`get "a`, "", "try: help quoting"},
		{"expect 1 get missing|expect 2 get", "(nil)\n", "as expected: missing KEY\n"},
		{"expect 0 get missing", "(nil)\n", "sscli: expected exit code 0, got 1\n"},
		{"time get missing", "(nil)\n", "took "},
		{"repeat 3 get missing", "(nil)\n(nil)\n(nil)\n", ""},
		{"repeat 2 expect 1 .timeout", "10s\n", "expected exit code 1, got 0"},
		{"REPEAT 2 sscli .timeout", "10s\n10s\n", ""},
		{"exit 256|.timeout", "10s\n", "expected exit [CODE], with an exit code of 0 to 255"},
	} {
		s := newShell(t, store, &user{entries: strings.Split(tt.lines, "|")})
		if err := s.run(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.lines, err)
		}
		stdout, stderr := printed(t, s)
		if diff := cmp.Diff(tt.stdout, stdout); diff != "" || !strings.Contains(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
			t.Errorf("%s: standard error %q, want %q (-want +got):\n%s", tt.lines, stderr, tt.stderr, diff)
		}
	}
}

// TestLeave: the exit code of the shell is the argument of exit. Lines after exit are not run.
func TestLeave(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for entry, want := range map[string]int{"exit": 0, "QUIT 7": 7, ".exit\nset b 1": 0, ".quit 8": 8, "sscli exit 9": 9, "get missing\nexit 1": 1} {
		s := newShell(t, store, &user{entries: []string{entry, "set b 1"}})
		err, code := s.run(t.Context()), 0
		if e, ok := errors.AsType[*fault.ExitError](err); ok {
			code = e.Code
		}
		if code != want || code == 0 && err != nil {
			t.Errorf("%q: %v, want exit code %d", entry, err, want)
		}
	}
	if keys := store.Keys(); len(keys) > 0 {
		t.Errorf("a line after exit set %q", keys)
	}
}

// TestLinesAfterAnError: an entry of several lines ends at the first error. An answer of "no" is not an error.
func TestLinesAfterAnError(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	s := newShell(t, store, &user{entries: []string{"get missing\nset a 1\nset\nset b 1\n\nset c 1", "set d 1"}})
	if err := s.run(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "d": "1"}, apptest.Contents(store)); diff != "" {
		t.Errorf("the store (-want +got):\n%s", diff)
	}
	if _, stderr := printed(t, s); !strings.Contains(stderr, "2 later lines were not run") {
		t.Errorf("%s", stderr)
	}
}

// TestInterrupt: Ctrl-C ends the running command, but not the shell.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	u := &user{entries: []string{"get a", "set early 1", "set b 1"}}
	s := newShell(t, store, u)
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() != wire.VerbGet {
			return emulator.Action{}
		}
		s.interrupted()
		return emulator.Action{Drop: true}
	})
	u.before = map[string]func(){"set early 1": s.interrupted} // after Enter, before the command runs
	if err := s.run(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"b": "1"}, apptest.Contents(store)); diff != "" {
		t.Errorf("the store (-want +got):\n%s", diff)
	}
	if _, stderr := printed(t, s); stderr != "\n" {
		t.Errorf("standard error %q, want only the end of the line with ^C", stderr)
	}
}

// TestReconnect: all lines share one connection. If it is lost during an entry, a message says so once, and so does the
// prompt until the next command reconnects.
func TestReconnect(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	u := &user{entries: []string{"set a 1", ".trace", "set b 1", "set c 1"}}
	s := newShell(t, store, u)
	u.before = map[string]func(){
		".trace": func() {
			if n := store.State().Connections; n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
			store.RefuseConnect(func(string, string) byte { return 0x88 }) // reason code: server unavailable
			store.DropAll()
			<-u.lost
		},
		"set b 1": func() { store.RefuseConnect(nil) },
		"set c 1": func() {
			if n := store.State().Connections; n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
		},
	}
	if err := s.run(t.Context()); err != nil {
		t.Error(err)
	}
	name := strings.TrimPrefix(store.URL(), "mqtt://")
	want := []string{name + "> ", name + "> ", name + " (not connected)> ", name + "> ", name + "> "}
	if diff := cmp.Diff(want, u.prompts); diff != "" {
		t.Errorf("the prompts (-want +got):\n%s", diff)
	}
	if n := len(store.Keys()); n != 3 {
		t.Errorf("%d keys, want 3", n)
	}
	if _, stderr := printed(t, s); strings.Count(stderr, "; the next command reconnects") != 1 || strings.Count(stderr, "reconnected") != 1 {
		t.Errorf("want the loss and the new connection reported once:\n%s", stderr)
	}
}
