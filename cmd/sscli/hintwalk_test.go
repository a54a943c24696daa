package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/repl"
)

// A walk follows hints as a user would, against one store.
type walk struct {
	t    *testing.T
	env  []string
	fill *strings.Replacer // of the placeholders that a user must know
}

// A failed command is what a user sees of one.
type failure struct {
	Kind, Message, Hint string
	code                int
	line                []string // the command
}

// place identifies where a user is. Versions and times differ each time.
func (f failure) place() string {
	return regexp.MustCompile(`\d{13,15}:\d+:\S+|\d{4}-\d\d-\d\dT[\d:.]+Z|\((in )?[\dhms.]+( ago)?\)|waited \S+`).ReplaceAllString(fmt.Sprint(f.Kind, " ", f.Message, " ", f.Hint), "#")
}

// run runs a command line. ok is false if it did not end with an error.
func (w *walk) run(line []string) (f failure, ok bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(process.Environ(nil, "SSCLI_CONTEXT", "SSCLI_CONFIG"), w.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
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
	f.line = line
	return f, ok && err != nil
}

// prose ends a command in a hint.
var prose = regexp.MustCompile(`( (shows|asks|overrides|prints|lists|writes|is|with the|in place of|that)\b|, | \(|: |…$).*`)

// next returns the command lines that a hint proposes after a failed one.
func (w *walk) next(f failure) (lines [][]string) {
	failed := slices.Clone(f.line[1:])
	for part := range strings.SplitSeq(f.Hint, "; ") {
		for _, part := range regexp.MustCompile(`,? or |, then |, and |: `).Split(part, -1) {
			_, text, isCommand := strings.Cut(part, "sscli ")
			switch {
			case strings.HasPrefix(part, "--trace"), strings.HasPrefix(part, "--observe"), strings.Contains(part, "env -u"):
				continue // they show more, are for the command before, or are for another store
			case isCommand:
				text = strings.ReplaceAll(text, "sscli …", "sscli "+strings.Join(failed, " "))
				text = strings.ReplaceAll(text, " … ", " 2 ")
				text = "sscli " + text
			case strings.HasPrefix(part, "-"):
				if strings.Contains(part, " in place of --fence") {
					i := slices.Index(failed, "--fence")
					failed = slices.Delete(failed, i, i+2)
				}
				text = "sscli " + strings.Join(failed, " ") + " " + strings.ReplaceAll(part, " with ", " ")
			default:
				continue
			}
			words, err := repl.Split(w.fill.Replace(prose.ReplaceAllString(text, "")))
			if err != nil {
				w.t.Errorf("%s: the hint is no command line: %v", part, err)
			}
			var line []string
			for _, word := range words {
				line = append(line, word.Text)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// follow follows the hints of a failure. path has the places where the user has been.
func (w *walk) follow(f failure, path []string) (steps int) {
	w.t.Helper()
	path = append(path, f.place())
	if len(path) > 4 {
		w.t.Errorf("after %d hints the user is still on the way:\n%s", len(path), strings.Join(path, "\n"))
		return 0
	}
	for _, name := range []string{"NAME", "KEY"} {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(f.Hint) {
			w.t.Errorf("%q: the hint has the placeholder %s: %s", f.line, name, f.Hint)
		}
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

// TestHintsLeadOn follows the hints of real failures: no hint leads back to a failure with the same hint,
// and none names a command that is refused.
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
		prepare []string // lines that must succeed
		line    string
		users   bool // the broker requires a login
		kind    string
		least   int // the number of steps
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
		{"a busy lock", []string{"sscli lock acquire door --holder job-7"}, "sscli lock acquire door --holder job-8 --try", false, "lock_busy", 1},
		{"another's lock renewed", []string{"sscli lock acquire door --holder job-7"}, "sscli lock renew door --holder job-8 --ttl 10s", false, "lock_not_held", 1},
		{"another's lock released", []string{"sscli lock acquire door --holder job-7"}, "sscli lock release door --holder job-8", false, "lock_not_held", 1},
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
				o.Users = map[string]string{"ann": "secret"}
				o.CheckToken = func(token []byte) bool { return string(token) == "good" }
			}
			server := emulator.Start(t, o)
			w := &walk{t: t, env: []string{
				"SSCLI_URL=" + server.URL(), "SSCLI_OUTPUT=json", "XDG_CONFIG_HOME=" + t.TempDir(), "SSCLI_TIMEOUT=5s",
			}, fill: strings.NewReplacer(
				"LOCK", "walkers-lock", "--fence TOKEN", "--fence "+future(), "CMD...", "sscli version", "./deploy.sh", "sscli version", "VALUE", "2",
				"--username ", "--username ann ", "--password-file", "--password-file "+password, "--sat-file", "--sat-file "+token,
			)}
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
				t.Errorf("%s: the hint led to %d commands, want at least %d: %s", test.line, steps, test.least, f.Hint)
			}
		})
	}
}
