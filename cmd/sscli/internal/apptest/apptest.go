// Package apptest runs commands of sscli in the process of a test, against a store that the test
// looks into.
package apptest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/emulator"
)

// Run runs a command line of sscli, and returns its exit code and what it printed. commands are
// the commands that it may use, env is its environment.
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
	a := &app.App{Commands: commands, Stdin: strings.NewReader(""), Stdout: open("stdout"), Stderr: open("stderr"),
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	code = a.Report(cmdline.Run(t.Context(), a, args))
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

// RandomBytes returns from least to most bytes of any kind.
func RandomBytes(rnd *rand.Rand, least, most int) string {
	b := make([]byte, least+rnd.IntN(most-least+1))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return string(b)
}
