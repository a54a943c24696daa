//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

// A conversation is an sscli on a terminal.
type conversation struct {
	t        *testing.T
	cmd      *exec.Cmd
	terminal *os.File     // the test's end of the terminal
	before   *term.State  // modes of the terminal before sscli started
	out      bytes.Buffer // standard output, if it is not the terminal
	closed   chan struct{}

	mu    sync.Mutex
	shown []byte
	more  chan struct{} // has a token when shown has grown
}

// keepOutput makes a terminal keep its output at Ctrl-C. Otherwise Linux discards the output that has not been read,
// possibly after the program has handled the signal and printed its last message.
func keepOutput(t *testing.T, tty *os.File) {
	t.Helper()
	stty := exec.Command("stty", "noflsh")
	stty.Stdin = tty
	if out, err := stty.CombinedOutput(); err != nil {
		t.Fatalf("stty: %v: %s", err, out)
	}
}

// startOnTerminal starts a program on its own terminal, with the given size unless size is nil, and returns the test's
// end of the terminal.
func startOnTerminal(t *testing.T, cmd *exec.Cmd, size *pty.Winsize) *os.File {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	keepOutput(t, slave) // before the program can print anything
	if size != nil {
		if err := pty.Setsize(slave, size); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return master
}

// converse starts sscli on its own terminal. Standard input and standard error are the terminal unless adapt changes
// them.
func converse(t *testing.T, env []string, adapt func(*exec.Cmd), args ...string) *conversation {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	keepOutput(t, slave)
	before, err := term.GetState(int(slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	c := &conversation{t: t, terminal: master, before: before, closed: make(chan struct{}), more: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // for all that the test waits for
	t.Cleanup(cancel)
	c.cmd = exec.CommandContext(ctx, self, args...)
	c.cmd.Args[0] = "sscli"
	c.cmd.Env = append(process.Environ(nil, "SSCLI_URL", "SSCLI_CONTEXT", "SSCLI_CONFIG", "SSCLI_OUTPUT"), "TERM=dumb", "GORACE=atexit_sleep_ms=0", "XDG_CONFIG_HOME=/nowhere")
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, &c.out, slave
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if adapt != nil {
		adapt(c.cmd)
	}
	if _, in := c.cmd.Stdin.(*os.File); !in { // standard input is not the terminal: pass the terminal as descriptor 3
		c.cmd.ExtraFiles = []*os.File{slave}
		c.cmd.SysProcAttr.Ctty = 3
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.closed)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			c.mu.Lock()
			c.shown = append(c.shown, buf[:n]...)
			c.mu.Unlock()
			select {
			case c.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Wait()
		}
		<-c.closed
		master.Close()
	})
	return c
}

// screen returns what the terminal has shown.
func (c *conversation) screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ReplaceAll(string(c.shown), "\r\n", "\n")
}

// await waits until the terminal has shown text.
func (c *conversation) await(text string) {
	c.t.Helper()
	for !strings.Contains(c.screen(), text) {
		select {
		case <-c.more:
		case <-c.closed:
			if !strings.Contains(c.screen(), text) {
				c.t.Fatalf("the terminal showed %q, and never %q", c.screen(), text)
			}
		}
	}
}

func (c *conversation) typeIn(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.terminal, text); err != nil {
		c.t.Fatal(err)
	}
}

// modes returns the current modes of the terminal.
func (c *conversation) modes() (now *term.State) {
	c.t.Helper()
	conn, err := c.terminal.SyscallConn()
	if err != nil {
		c.t.Fatal(err)
	}
	if controlErr := conn.Control(func(fd uintptr) { now, err = term.GetState(int(fd)) }); controlErr != nil || err != nil {
		c.t.Fatal(controlErr, err)
	}
	return now
}

// end waits for sscli to end and returns the exit code, 128+N for a signal.
func (c *conversation) end() int {
	c.t.Helper()
	err := c.cmd.Wait()
	<-c.closed
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		c.t.Fatal(err)
	}
	status := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// protectedContext creates a protected context for a store, and returns the environment that chooses it.
func protectedContext(t *testing.T, store *emulator.Server) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "current: prod\ncontexts: {prod: {url: \"" + store.URL() + "\", protected: true}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"SSCLI_CONFIG=" + file}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	const question = `set "a": context prod is protected. Continue? [y/N] `
	for _, c := range []struct {
		answer string
		code   int
		rest   string // shown after the echo of the answer
	}{
		{"y\n", 0, ""},
		{"YES\n", 0, ""},
		{"n\n", 2, "sscli: set \"a\": cancelled, nothing was sent\n"},
		{"\n", 2, "sscli: set \"a\": cancelled, nothing was sent\n"},
		{"yesterday\n", 2, "sscli: set \"a\": cancelled, nothing was sent\n"},
		{"\x04", 2, "sscli: set \"a\": cancelled, nothing was sent\n"},
		{"\x03", 130, "sscli: interrupted\n"},
	} {
		t.Run(strings.Trim(c.answer, "\n"), func(t *testing.T) {
			store := emulator.Start(t)
			s := converse(t, protectedContext(t, store), nil, "set", "a", "1")
			s.await(question)
			if n := store.State().Connections; n != 0 {
				t.Errorf("%d connections before the answer", n)
			}
			s.typeIn(c.answer)
			if code := s.end(); code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, s.screen())
			}
			if !strings.HasSuffix(s.screen(), c.rest) {
				t.Errorf("the terminal shows %q, want %q at the end", s.screen(), c.rest)
			}
			entry, found := store.Get("a")
			if found != (c.code == 0) || found && string(entry.Value) != "1" {
				t.Errorf("the store holds %q", entry.Value)
			}
			if c.code == 0 && !strings.HasPrefix(s.out.String(), "OK\t") {
				t.Errorf("standard output: %q", s.out.String())
			}
		})
	}
}

// TestConfirmMatch: del --match asks in every context, once, before it deletes.
func TestConfirmMatch(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for _, key := range []string{"tmp/1", "tmp/2", "keep"} {
		if _, err := store.Set(key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		answer string
		code   int
		left   int // number of keys in the store afterwards
	}{{"n\n", 2, 3}, {"y\n", 0, 1}} {
		s := converse(t, []string{"SSCLI_URL=" + store.URL()}, nil, "del", "--match", "tmp/*")
		s.await(`del 2 keys that match "tmp/*", "tmp/1" to "tmp/2". Continue? [y/N] `)
		s.typeIn(c.answer)
		if code := s.end(); code != c.code || store.State().Keys != c.left {
			t.Errorf("%q: exit code %d, %d keys left: %s", c.answer, code, store.State().Keys, s.screen())
		}
	}
}

// TestConfirmDeletesWhatWasShown: a key is not deleted if another client writes it, or deletes and creates it again,
// while the user reads the question.
func TestConfirmDeletesWhatWasShown(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte(`{"key":"keep","value":"1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"del", "--match", "tmp/*"},
		{"apply", source, "--prune", "tmp/*", "--prune-all"},
	} {
		store := emulator.Start(t)
		for _, key := range []string{"tmp/again", "tmp/gone", "tmp/new", "tmp/same", "keep"} {
			apptest.Put(t, store, key, "1")
		}
		s := converse(t, []string{"SSCLI_URL=" + store.URL()}, nil, args...)
		s.await("Continue? [y/N] ")
		apptest.Remove(store, "tmp/again")
		apptest.Put(t, store, "tmp/again", "1")
		apptest.Remove(store, "tmp/gone")
		apptest.Put(t, store, "tmp/new", "2")
		apptest.Put(t, store, "tmp/late", "1")
		s.typeIn("y\n")
		if code := s.end(); code != 1 {
			t.Errorf("%q: exit code %d, want 1: %s", args, code, s.screen())
		}
		want := map[string]string{"keep": "1", "tmp/again": "1", "tmp/new": "2", "tmp/late": "1"}
		if diff := cmp.Diff(want, apptest.Contents(store)); diff != "" {
			t.Errorf("%q (-want +got):\n%s\n%s", args, diff, s.screen())
		}
	}
}

// TestConfirmWithoutTerminal: sscli asks only if both standard input and standard error are terminals.
func TestConfirmWithoutTerminal(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	env := protectedContext(t, store)
	var stderr bytes.Buffer
	for name, adapt := range map[string]func(*exec.Cmd){
		"standard input": func(c *exec.Cmd) { c.Stdin = strings.NewReader("y\n") },
		"standard error": func(c *exec.Cmd) { c.Stderr = &stderr },
	} {
		s := converse(t, env, adapt, "set", "a", "1")
		if code := s.end(); code != 2 {
			t.Errorf("%s is no terminal: exit code %d: %s", name, code, s.screen())
		}
		if text := s.screen() + stderr.String(); !strings.Contains(text, "and there is no terminal\n  try: --yes\n") {
			t.Errorf("%s is no terminal: %s", name, text)
		}
	}
	if n := store.State().Requests; n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestConfirmBatch: sscli asks once about a batch file, before its first line.
func TestConfirmBatch(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, []byte("get a\nset a 1\nexpect 0 set b 2\nget b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	question := "batch " + format.Path(file) + " (lines that write: 2): context prod is protected. Continue? [y/N] "
	for answer, code := range map[string]int{"y\n": 0, "n\n": 2} {
		store := emulator.Start(t)
		s := converse(t, protectedContext(t, store), nil, "batch", file, "--keep-going")
		s.await(question)
		if n := store.State().Connections; n != 0 {
			t.Errorf("%d connections before the answer", n)
		}
		s.typeIn(answer)
		got := s.end()
		if keys := len(store.Keys()); code == 0 && (got != 1 || keys != 2) || code != 0 && (got != code || keys != 0) {
			t.Errorf("%q: exit code %d, %d keys: %s", answer, got, keys, s.screen())
		}
		if n := strings.Count(s.screen(), "[y/N]"); n != 1 {
			t.Errorf("%q: asked %d times", answer, n)
		}
	}
}

// TestConfirmStream: for a batch that cannot be read twice, sscli asks once, at the first line that writes. For a batch
// that is typed, it cannot ask.
func TestConfirmStream(t *testing.T) {
	t.Parallel()
	for answer, keys := range map[string]int{"y\n": 2, "n\n": 0} {
		store := emulator.Start(t)
		file := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(file, 0o600); err != nil {
			t.Fatal(err)
		}
		s := converse(t, protectedContext(t, store), nil, "batch", file, "--keep-going")
		pipe, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(pipe, "get a\nset a 1\nset b 2\n"); err != nil || pipe.Close() != nil {
			t.Fatal(err)
		}
		s.await("set \"a\": context prod is protected. Continue? [y/N] ")
		s.typeIn(answer)
		code := s.end()
		if got := len(store.Keys()); got != keys || (code == 2) != (keys == 0) {
			t.Errorf("%q: exit code %d, %d keys: %s", answer, code, got, s.screen())
		}
		if n := strings.Count(s.screen(), "[y/N]"); n != 1 {
			t.Errorf("%q: asked %d times", answer, n)
		}
	}
	store := emulator.Start(t)
	s := converse(t, protectedContext(t, store), nil, "batch", "-")
	s.typeIn("set a 1\n")
	s.await("sscli: line 1: set \"a\": context prod is protected, and standard input is the batch, so it cannot be confirmed there\n  try: --yes\n")
	if code := s.end(); code != 2 || len(store.Keys()) != 0 {
		t.Errorf("exit code %d: %s", code, s.screen())
	}
}

const typedPassword = "correct horse"

func passwordStore(t *testing.T) *emulator.Server {
	return emulator.Start(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": typedPassword})})
}

// TestAskPass: the password is read from the terminal, wherever the standard streams lead. It is not echoed, and
// appears in no output.
func TestAskPass(t *testing.T) {
	t.Parallel()
	store := passwordStore(t)
	question := "Password of ann at " + store.Addr().String() + ": "
	var stderr bytes.Buffer
	for name, adapt := range map[string]func(*exec.Cmd){
		"terminal":       nil,
		"pipes":          func(c *exec.Cmd) { c.Stdin, c.Stderr = strings.NewReader("from a pipe"), &stderr },
		"standard error": func(c *exec.Cmd) { c.Stderr = &stderr },
	} {
		stderr.Reset()
		args := []string{"set", "a", "1", "-u", store.URL(), "--username", "ann", "--askpass", "--trace", "-v"}
		if name == "pipes" {
			args[2] = "-"
		}
		s := converse(t, nil, adapt, args...)
		s.await(question)
		s.typeIn(typedPassword + "\n")
		if code := s.end(); code != 0 {
			t.Errorf("%s: exit code %d: %s", name, code, s.screen())
		}
		all := s.screen() + s.out.String() + stderr.String()
		if strings.Contains(all, typedPassword) || !strings.Contains(all, "CONNECT") {
			t.Errorf("%s: no trace, or the password in it: %s", name, all)
		}
		want := "1"
		if name == "pipes" {
			want = "from a pipe"
		}
		if entry, _ := store.Get("a"); string(entry.Value) != want {
			t.Errorf("%s: the store holds %q", name, entry.Value)
		}
	}
}

func TestAskPassWrong(t *testing.T) {
	t.Parallel()
	store := passwordStore(t)
	s := converse(t, nil, nil, "get", "a", "-u", store.URL(), "--username", "ann", "--askpass")
	s.await(": ")
	s.typeIn("hunter2\n")
	if code := s.end(); code != fault.CodeLogin || strings.Contains(s.screen(), "hunter2") {
		t.Errorf("exit code %d: %s", code, s.screen())
	}
}

// TestAskPassInterrupted: a signal, typed or sent, ends the question, and the terminal modes are restored.
func TestAskPassInterrupted(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(*conversation){
		"typed": func(s *conversation) { s.typeIn("secr\x03") },
		"sent": func(s *conversation) {
			if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		},
	} {
		store := passwordStore(t)
		s := converse(t, nil, nil, "get", "a", "-u", store.URL(), "--username", "ann", "--askpass")
		s.await(": ")
		if reflect.DeepEqual(s.modes(), s.before) {
			t.Errorf("%s: the terminal shows what is typed", name)
		}
		interrupt(s)
		if code := s.end(); code != 130 || !strings.HasSuffix(s.screen(), "\nsscli: --askpass: interrupted\n") {
			t.Errorf("%s: exit code %d: %q", name, code, s.screen())
		}
		if !reflect.DeepEqual(s.modes(), s.before) {
			t.Errorf("%s: the terminal is not as it was before", name)
		}
		if n := store.State().Connections; n != 0 {
			t.Errorf("%s: %d connections", name, n)
		}
	}
}

// TestAskPassNoTerminal: a process in a new session has no terminal to ask on.
func TestAskPassNoTerminal(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	store := passwordStore(t)
	cmd := exec.Command(self, "get", "a", "-u", store.URL(), "--username", "ann", "--askpass")
	cmd.Args[0] = "sscli"
	cmd.Env = append(process.Environ(nil), "XDG_CONFIG_HOME=/nowhere")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	const hint = "\n  try: --password-file in place of --askpass, --yes in place of an answer\n"
	if !ok || exit.ExitCode() != 2 || !strings.HasPrefix(string(out), "sscli: --askpass: no terminal to ask on: ") || !strings.HasSuffix(string(out), hint) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestAskPassOnce: one answer serves every connection of a watch, and the commands of the watch do not get it.
func TestAskPassOnce(t *testing.T) {
	t.Parallel()
	store := passwordStore(t)
	const show = `cat; env; echo "end of $SSCLI_EVENT_OP" >&2`
	s := converse(t, nil, nil, "watch", "a", "-n", "1", "-u", store.URL(), "--username", "ann", "--askpass", "--", "sh", "-c", show)
	s.await("Password of ann")
	s.typeIn(typedPassword + "\n")
	s.await("end of initial\n")
	store.DropAll()
	s.await("end of resync\n")
	if _, err := store.Set("a", "1"); err != nil {
		t.Fatal(err)
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.screen())
	}
	if n := strings.Count(s.screen(), "Password of"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if all := s.screen() + s.out.String(); strings.Contains(all, typedPassword) || !strings.Contains(all, "SSCLI_EVENT_OP=set\n") {
		t.Errorf("the password is there, or the event is not:\n%s", all)
	}
}

func TestReadSecretLine(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"secret\r":         "secret",
		"secret\nmore":     "secret",
		"secret":           "secret",
		"\r":               "",
		" two words \r":    " two words ",
		"wrong\x15right\r": "right",
		"secreä\x7ft\r":    "secret",
		"\x7f\x08x\r":      "x",
		"sec\x04ret\r":     "secret",
		"\xff\x7f\r":       "",
	} {
		got, err := terminal.ReadSecretLine(strings.NewReader(typed))
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v, want %q", typed, got, err, want)
		}
	}
	for _, typed := range []string{"", "\x04"} {
		if got, err := terminal.ReadSecretLine(strings.NewReader(typed)); err == nil {
			t.Errorf("%q: %q, want an error", typed, got)
		}
	}
	if _, err := terminal.ReadSecretLine(strings.NewReader("sec\x03ret\r")); !fault.IsA[*signals.Interrupted](err) {
		t.Errorf("%v, want an interrupt", err)
	}
}

// TestReadingInterrupted: a command that waits for standard input says so on a terminal. It ends at the first Ctrl-C,
// or at the first signal if standard input is a pipe.
func TestReadingInterrupted(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"set":   {[]string{"set", "k", "-"}, "reading the value; Ctrl-D ends"},
		"file":  {[]string{"set", "k", "-f", "-"}, "reading the value; Ctrl-D ends"},
		"watch": {[]string{"watch", "--keys-from", "-"}, "reading the keys, one per line; Ctrl-D ends"},
	} {
		t.Run(name, func(t *testing.T) {
			s := converse(t, []string{"SSCLI_URL=" + store.URL()}, nil, c.args...)
			s.await(c.says)
			s.typeIn("half a line\x03")
			if code := s.end(); code != 130 || !strings.Contains(s.screen(), "sscli: interrupted\n") { // the echo of Ctrl-C may come late
				t.Errorf("exit code %d: %s", code, s.screen())
			}
		})
		t.Run(name+" from a pipe", func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			if _, err := w.WriteString("half a line"); err != nil {
				t.Fatal(err)
			}
			s := converse(t, []string{"SSCLI_URL=" + store.URL()}, func(cmd *exec.Cmd) {
				cmd.Stdin, cmd.SysProcAttr.Ctty = r, 2 // the terminal is on standard error
			}, append(c.args, "--timeout", "20s")...)
			waitUntilRead(t, r)
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := s.end(); code != 143 || strings.Contains(s.screen(), "reading") {
				t.Errorf("exit code %d: %s", code, s.screen())
			}
		})
	}
	if n := store.State().Connections; n != 0 {
		t.Errorf("%d connections", n)
	}
}

// TestOverrideWarnsOnce: on a terminal, sscli says once a day that variables override the chosen context. In a pipe it
// says so only with --verbose.
func TestOverrideWarnsOnce(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	const warning = "SSCLI_URL overrides the chosen context prod"
	env := append(protectedContext(t, store), "SSCLI_URL="+store.URL(), "XDG_STATE_HOME="+t.TempDir())
	run := func(piped bool, flags ...string) bool {
		s := converse(t, env, func(cmd *exec.Cmd) {
			if !piped {
				cmd.Stdout = cmd.Stderr
			}
		}, append([]string{"get", "k"}, flags...)...)
		if code := s.end(); code != 1 {
			t.Errorf("exit code %d: %s", code, s.screen())
		}
		return strings.Contains(s.screen(), warning)
	}
	for i, c := range []struct{ piped, verbose, warns bool }{
		{true, false, false}, {true, true, true}, {false, false, true}, {false, false, false}, {false, true, true}, {true, true, true},
	} {
		var flags []string
		if c.verbose {
			flags = []string{"-v"}
		}
		if got := run(c.piped, flags...); got != c.warns {
			t.Errorf("%d: piped %t, verbose %t: warned %t", i, c.piped, c.verbose, got)
		}
	}
}

// TestFIFOInterrupted: Ctrl-C ends the wait for a FIFO that nobody writes to.
func TestFIFOInterrupted(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for _, args := range [][]string{
		{"set", "k", "-f"}, {"vdel", "k", "-f"}, {"watch", "--keys-from"}, {"lock", "trace", "--from"}, {"dataset", "check"},
	} {
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		s := converse(t, []string{"SSCLI_URL=" + store.URL()}, nil, append(args, fifo)...)
		w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // blocks until sscli reads
		if err != nil {
			t.Fatal(err)
		}
		s.typeIn("\x03")
		if code := s.end(); code != 130 || !strings.Contains(s.screen(), "sscli: interrupted\n") {
			t.Errorf("%q: exit code %d: %s", args, code, s.screen())
		}
		w.Close()
	}
}

// waitUntilRead waits until a pipe is empty.
func waitUntilRead(t *testing.T, r *os.File) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		fds := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 0); n == 0 && err == nil {
			return
		}
	}
	t.Fatal("nobody reads the pipe")
}

// TestTypedValue: Ctrl-D ends a typed value, which is stored as it is.
func TestTypedValue(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	s := converse(t, []string{"SSCLI_URL=" + store.URL()}, nil, "set", "k", "-")
	s.await("reading the value; Ctrl-D ends")
	s.typeIn("two\nlines\n\x04")
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.screen())
	}
	if entry, _ := store.Get("k"); string(entry.Value) != "two\nlines\n" {
		t.Errorf("the store holds %q", entry.Value)
	}
	s = converse(t, []string{"SSCLI_URL=" + store.URL()}, nil, "set", "k", "-", "-q")
	s.typeIn("quiet\x04\x04")
	if code := s.end(); code != 0 || strings.Contains(s.screen(), "reading") {
		t.Errorf("-q: exit code %d: %s", code, s.screen())
	}
}
