package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/emulator"
)

// A walk follows hints as a user would, against one store.
type walk struct {
	t      *testing.T
	env    []string
	hints  string                     // the file with the hints
	root   *cobra.Command             // the root of all commands
	places map[suggest.Place][]string // values that a user must know
	flags  map[string]string          // values of flags
	later  []string                   // flags that only help later, or only show more
}

// A failure is a failed command as a user sees it.
type failure struct {
	Kind, Message string
	hint          suggest.Hint
	code          int
	line          []string // the command line
}

// place identifies where the user is, without versions and times, which differ between runs.
func (f failure) place() string {
	return regexp.MustCompile(`\d{13,15}:\d+:\S+|\d{4}-\d\d-\d\dT[\d:.]+Z|\((in )?[\dhms.]+( ago)?\)|waited \S+`).ReplaceAllString(fmt.Sprint(f.Kind, " ", f.Message, " ", f.hint), "#")
}

// run runs a command line. ok is false if the command succeeded.
func (w *walk) run(line []string) (f failure, ok bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(process.Environ(nil, "SSCLI_CONTEXT", "SSCLI_CONFIG"), append(w.env, hintsFile+"="+w.hints)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := os.RemoveAll(w.hints); err != nil {
		w.t.Fatal(err)
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		w.t.Fatalf("%q does not end", line)
	}
	for text := range bytes.Lines(stderr.Bytes()) {
		var next struct {
			Op string
			failure
		}
		if json.Unmarshal(text, &next) == nil && next.Op == "error" {
			f, ok = next.failure, true
		}
	}
	if err != nil {
		f.code = cmd.ProcessState.ExitCode()
	}
	if hints := readHints(w.hints); len(hints) > 0 {
		f.hint = hints[len(hints)-1]
	}
	f.line = line
	return f, ok && err != nil
}

// next returns the command lines that the hint of f proposes.
func (w *walk) next(f failure) (lines [][]string) {
	for _, step := range f.hint {
		about := f.line // the command line that flags apply to
		for _, p := range step {
			argv := w.typed(p.Argv, f.line)
			switch {
			case p.IsFlags():
				about = w.without(about, w.typed(p.Without, f.line))
				if slices.ContainsFunc(argv, func(word string) bool { return slices.Contains(w.later, word) }) {
					continue
				}
				lines = append(lines, w.with(about, argv))
			case len(argv) > 0 && slices.Contains(argv, "sscli") && argv[0] != "env": // env is for another store
				lines = append(lines, argv)
				if !w.has(about, "--observe") && w.has(argv, "--observe") {
					about = argv
				}
			}
		}
	}
	return lines
}

// inner returns the index of the last sscli in line. If one command runs under another, the inner one failed.
func inner(line []string) int {
	i := len(line) - 1
	for line[i] != "sscli" {
		i--
	}
	return i
}

// has reports whether the innermost command of line has a flag.
func (w *walk) has(line []string, flag string) bool {
	cmd, _, err := w.root.Find(line[inner(line)+1:])
	return err == nil && hasFlag(w.root, cmd, flag)
}

// with returns line with flags added to its innermost command, or to the command before -- if the innermost one does
// not have them.
func (w *walk) with(line, flags []string) []string {
	end := len(line)
	if i := slices.Index(line, "--"); i >= 0 && len(flags) > 0 && !w.has(line, flags[0]) {
		end = i
	}
	return slices.Insert(slices.Clone(line), end, flags...)
}

// without returns line without these words of its innermost command. If the last word is a flag, its value is removed
// too.
func (w *walk) without(line, words []string) []string {
	if len(words) == 0 {
		return line
	}
	start := inner(line)
	i := start + slices.Index(line[start:], words[0])
	end := i + len(words)
	if cmd, _, err := w.root.Find(line[start+1:]); err == nil {
		if flag := cmd.Flag(strings.TrimPrefix(words[len(words)-1], "--")); flag != nil && flag.NoOptDefVal == "" {
			end++
		}
	}
	return slices.Delete(slices.Clone(line), i, end)
}

// typed returns the words that a user types to follow a hint after a failed command.
func (w *walk) typed(words []suggest.Word, failed []string) (argv []string) {
	for i, word := range words {
		text := word.Typed()
		if values, ok := w.places[word.Place]; ok && word.Place != "" {
			argv = append(argv, word.Text+values[0]+word.After)
			argv = append(argv, values[1:]...)
			continue
		}
		switch {
		case word.Place == suggest.Again && i > 0 && argv[i-1] == "sscli":
			argv = append(argv, failed[1:]...)
		case word.Place != "":
			w.t.Errorf("%q: the hint has the place %s: %v", failed, word.Place, words)
		case text == "./deploy.sh":
			argv = append(argv, "sscli", "version")
		default:
			argv = append(argv, text)
		}
		last := i == len(words)-1 || words[i+1].Text != "" && words[i+1].Text[0] == '-'
		if value, ok := w.flags[text]; ok && last {
			argv = append(argv, value)
		}
	}
	return argv
}

// follow follows the hints of a failure. path lists the places that the user has already visited.
func (w *walk) follow(f failure, path []string) (steps int) {
	w.t.Helper()
	path = append(path, f.place())
	if len(path) > 4 {
		w.t.Errorf("after %d hints the user is still on the way:\n%s", len(path), strings.Join(path, "\n"))
		return 0
	}
	for _, line := range w.next(f) {
		steps++
		after, failed := w.run(line)
		if !failed {
			continue
		}
		if slices.Contains(path, after.place()) {
			w.t.Errorf("%q fails, its hint leads to %q, and the user is where he was:\n%s", f.line, line, after.place())
			continue
		}
		if after.Kind == "usage" || after.Kind == "config" {
			w.t.Errorf("%q fails, and the command of its hint is refused:\n%q\n%s", f.line, line, after.Message)
			continue
		}
		steps += w.follow(after, path)
	}
	return steps
}

// TestHintsLeadOn follows the hints of real failures. No hint may lead back to a failure with the same hint, or name a
// command that is refused.
func TestHintsLeadOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token, password := filepath.Join(dir, "token"), filepath.Join(dir, "password")
	for file, text := range map[string]string{token: "good", password: "secret"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	future := func() string { return fmt.Sprintf("%d:0:somebody", time.Now().Add(50*time.Second).UnixMilli()) }
	tests := []struct {
		name    string
		prepare []string // commands that must succeed
		line    string
		users   bool // the broker requires a login
		kind    string
		least   int // the minimum number of steps
	}{
		{"no token", []string{"sscli set door open --fence 1696374425000:0:a"}, "sscli set door shut", false, "fencing_required", 3},
		{"a lower token", []string{"sscli set door open --fence 1696374425000:0:a"}, "sscli set door shut --fence 1:0:a", false, "fencing_lower", 1},
		{"a lower token, del", []string{"sscli set door open --fence 1696374425000:0:a"}, "sscli del door --fence 1:0:a", false, "fencing_lower", 1},
		{"a token from the future", []string{"sscli set door open --fence FUTURE"}, "sscli set door shut --fence NOW", false, "fencing_lower", 1},
		{"no token, the token from the future", []string{"sscli set door open --fence FUTURE"}, "sscli set door shut", false, "fencing_required", 3},
		{"a token that is too far ahead", nil, "sscli set door shut --fence 99999999999999:0:a", false, "fencing_ahead", 1},
		{"an ordinary key as a lock", []string{"sscli set door open --fence 1696374425000:0:a"}, "sscli lock acquire door --holder job-7 --try", false, "fencing_required", 2},
		{"an ordinary key as the lock of a command", []string{"sscli set door open --fence 1696374425000:0:a"}, "sscli lock run door --try -- sscli version", false, "fencing_required", 2},
		{"a key without expiry as a lock", []string{"sscli set door 21.5"}, "sscli lock run door --wait 100ms -- sscli version", false, "lock_busy", 1},
		{"a busy lock", []string{"sscli lock acquire door --holder job-7 --ttl 15s"}, "sscli lock acquire door --holder job-8 --try", false, "lock_busy", 1},
		{"another's lock renewed", []string{"sscli lock acquire door --holder job-7"}, "sscli lock renew door --holder job-8 --ttl 10s", false, "lock_not_held", 1},
		{"another's lock released", []string{"sscli lock acquire door --holder job-7"}, "sscli lock release door --holder job-8", false, "lock_not_held", 1},
		{"a lock that must be broken", []string{"sscli lock acquire door --holder job-7"}, "sscli lock break door", false, "protected", 1},
		{"the lock itself", nil, "sscli lock run door -- sscli set door 1 --fence lock", false, "usage", 0},
		{"no lock around", nil, "sscli set door 1 --fence lock", false, "usage", 0},
		{"lock run without a command", nil, "sscli lock run door", false, "usage", 1},
		{"a context that is not there", nil, "sscli get a -c nowhere", false, "context", 1},
		{"no value", nil, "sscli set a", false, "usage", 1},
		{"a verb in small letters", nil, "sscli call get a", false, "unknown_command", 1},
		{"nobody logged in", nil, "sscli get a", true, "login", 2},
		{"a user without a password", nil, "sscli get a --username ann", true, "login", 1},
		{"nothing listens", nil, "sscli get a -u mqtt://127.0.0.1:1", false, "refused", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := emulator.Options{}
			if test.users {
				o.CheckLogin = emulator.Passwords(map[string]string{"ann": "secret"})
				o.CheckToken = func(token []byte, _ time.Time) (emulator.Login, error) {
					if string(token) != "good" {
						return emulator.Login{}, errors.New("not a token")
					}
					return emulator.Login{}, nil
				}
			}
			server := emulator.Start(t, o)
			w := &walk{t: t, env: []string{
				"SSCLI_URL=" + server.URL(), "SSCLI_OUTPUT=json", "XDG_CONFIG_HOME=" + t.TempDir(), "SSCLI_TIMEOUT=30s",
			}, hints: filepath.Join(t.TempDir(), "hints"), root: cmdline.NewRoot(newApp()), places: map[suggest.Place][]string{
				suggest.OtherLock: {"walkers-lock"}, suggest.Token: {future()}, suggest.Cmd: {"sscli", "version"}, suggest.Value: {"2"}, suggest.Duration: {"100ms"},
			}, flags: map[string]string{"--username": "ann", "--password-file": password, "--sat-file": token, "--holder": "job-7"}, later: []string{"--trace", "--wait", "--timeout"}}
			typed := func(text string) []string {
				now := fmt.Sprintf("%d:0:now", time.Now().Add(time.Second).UnixMilli())
				return strings.Fields(strings.NewReplacer("FUTURE", future(), "NOW", now).Replace(text))
			}
			for _, line := range test.prepare {
				if f, failed := w.run(typed(line)); failed {
					t.Fatalf("%s: %+v", line, f)
				}
			}
			f, failed := w.run(typed(test.line))
			if !failed || f.Kind != test.kind {
				t.Fatalf("%s: %+v, want %s", test.line, f, test.kind)
			}
			if steps := w.follow(f, nil); steps < test.least {
				t.Errorf("%s: the hint led to %d commands, want at least %d: %s", test.line, steps, test.least, f.hint)
			}
		})
	}
}
