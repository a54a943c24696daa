package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/emulator"
)

// TestCodeIsTheExitCode: the code in a JSON error is the exit code, also where a mistake comes before or after writes, or
// several mistakes end a command. No message holds several of them.
func TestCodeIsTheExitCode(t *testing.T) {
	t.Parallel()
	const good, bad = `{"key":"new","value":"1"}` + "\n", "no JSON\n"
	large := strings.Repeat("x", 2000)
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for source, value := range map[string]string{"first/a": large, "first/b": "1", "last/a": "1", "last/b": large, "none/a": large} {
		file(source, value)
	}
	checks := file("checks", "checks:\n  - {key: a, min: x}\n  - {kye: b}\n  - {key: c, max-age: soon}\n")
	for _, tt := range []struct {
		args, input string
		code, lines int
	}{
		{"import - --keep-going", bad + good, 14, 1},
		{"import - --keep-going", good + bad + bad, 14, 2},
		{"import - --keep-going --inflight 1", bad + good + bad, 14, 2},
		{"import - --keep-going", bad + bad, 2, 2},
		{"import -", good + bad, 14, 1},
		{"import -", bad + good, 2, 1},
		{"batch --load - --keep-going", bad + good, 14, 1},
		{"batch --load - --keep-going", bad, 2, 1},
		{"batch - --keep-going", "set\nset k v\n", 2, 1},
		{"batch - --check", "set\nfoo\n", 2, 2},
		{"apply " + filepath.Join(dir, "first"), "", 14, 1},
		{"apply " + filepath.Join(dir, "last"), "", 14, 1},
		{"apply " + filepath.Join(dir, "none"), "", 2, 1},
		{"del --match held* --yes --fence 1:0:n", "", 14, 1},
		{"del --match heldb --yes --fence 1:0:n", "", 2, 1},
		{"check -f " + checks, "", 2, 3},
		{"set big " + large, "", 2, 1},
		{"get", "", 2, 1},
		{"get k -u", "", 2, 1},
		{"vdel k v --fence soon", "", 2, 1},
		{"lock break none --yes --fence x", "", 2, 1},
	} {
		store := emulator.Start(t, emulator.Options{Limits: emulator.Limits{MaxPacketSize: 1000}})
		for _, key := range []string{"helda", "heldb", "heldc"} {
			if _, err := store.Set(key, "1"); err != nil {
				t.Fatal(err)
			}
		}
		stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		env := func(name string) (string, bool) {
			return map[string]string{"SSCLI_OUTER_LOCKS": "heldb"}[name], name == "SSCLI_OUTER_LOCKS"
		}
		a := &app.App{Commands: table(), Topics: help.Topics, Stdin: strings.NewReader(tt.input), Stdout: &terminal.Output{File: null}, Stderr: &terminal.Output{File: stderr}, Env: env}
		code := a.Report(runLine(t.Context(), a, "sscli", append([]string{"-o", "json", "--url=" + store.URL()}, strings.Fields(tt.args)...)))
		_, _ = stderr.Close(), null.Close()
		text, err := os.ReadFile(stderr.Name())
		if err != nil {
			t.Fatal(err)
		}
		name, lines := tt.args, 0
		for line := range strings.Lines(string(text)) {
			var f struct {
				Op, Message string
				Code        int
			}
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Errorf("%.60s: %q: %v", name, line, err)
			}
			if f.Op != "error" {
				continue
			}
			if lines++; f.Code != code || strings.Contains(f.Message, "\n") {
				t.Errorf("%.60s %q: exit code %d, but %s", name, tt.input, code, line)
			}
		}
		if code != tt.code || lines != tt.lines {
			t.Errorf("%.60s %q: exit code %d with %d errors, want %d with %d:\n%s", name, tt.input, code, lines, tt.code, tt.lines, text)
		}
	}
}
