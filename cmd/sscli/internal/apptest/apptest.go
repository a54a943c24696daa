// Package apptest runs commands of sscli inside the test process, against a store that the test can
// inspect.
package apptest

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// Run runs a command line of sscli and returns its exit code and output. The command line can use only the given
// commands, and sees only the variables in env.
func Run(t *testing.T, commands []app.Command, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a := NewApp(commands, env, open("stdout"), open("stderr"))
	code = a.Report(cmdline.Run(t.Context(), a, args))
	var texts [2]string
	for i, f := range []*terminal.Output{a.Stdout, a.Stderr} {
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

// Runner returns [Run] for command lines of one command, or of several if each line begins with a name. url becomes
// SSCLI_URL, unless it is empty.
func Runner(commands ...app.Command) func(t *testing.T, url string, args ...string) (code int, stdout, stderr string) {
	return func(t *testing.T, url string, args ...string) (code int, stdout, stderr string) {
		t.Helper()
		env := make(map[string]string)
		if url != "" {
			env["SSCLI_URL"] = url
		}
		if len(commands) == 1 {
			args = append([]string{commands[0].Name}, args...)
		}
		return Run(t, commands, env, args...)
	}
}

// NewApp returns an App like the one that [Run] uses, with empty standard input and no help topics.
func NewApp(commands []app.Command, env map[string]string, stdout, stderr *os.File) *app.App {
	return &app.App{Commands: commands, Topics: func() []*cobra.Command { return nil },
		Stdin: strings.NewReader(""), Stdout: &terminal.Output{File: stdout}, Stderr: &terminal.Output{File: stderr},
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
}

// A Command is a running command. The test must read Stdout to its end.
type Command struct {
	Stdout *bufio.Reader
	code   chan int
	stderr string // name of the file with standard error
}

// Start is like [Run], but does not wait for the command to end.
func Start(t *testing.T, commands []app.Command, env map[string]string, args ...string) *Command {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	c := &Command{Stdout: bufio.NewReader(r), code: make(chan int, 1), stderr: stderr.Name()}
	go func() {
		a := NewApp(commands, env, w, stderr)
		code := a.Report(cmdline.Run(t.Context(), a, args))
		_ = w.Close()
		_ = stderr.Close()
		c.code <- code
	}()
	t.Cleanup(func() { _ = r.Close() })
	return c
}

// Wait waits for the command to end. It returns the exit code and what the command printed on standard error.
func (c *Command) Wait(t *testing.T) (code int, stderr string) {
	t.Helper()
	code = <-c.code
	text, err := os.ReadFile(c.stderr)
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
}

// Put sets a key of a store.
func Put(t *testing.T, store *emulator.Server, key, value string) {
	t.Helper()
	if _, err := store.Set(key, value); err != nil {
		t.Fatal(err)
	}
}

// Remove deletes a key of a store.
func Remove(store *emulator.Server, key string) {
	now := wire.Version{Wall: store.Now().UnixMilli(), Node: "test"}
	store.Do(emulator.NewRequest("", wire.AppendRequest(nil, wire.VerbDel, key), emulator.Property{Name: wire.PropTimestamp, Value: now.String()}))
}

// Contents returns the keys and values of a store.
func Contents(store *emulator.Server) map[string]string {
	all := make(map[string]string)
	for _, key := range store.Keys() {
		if e, ok := store.Get(key); ok {
			all[key] = string(e.Value)
		}
	}
	return all
}

// RandomBytes returns between least and most random bytes.
func RandomBytes(rnd *rand.Rand, least, most int) string {
	b := make([]byte, least+rnd.IntN(most-least+1))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return string(b)
}
