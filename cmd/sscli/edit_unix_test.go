//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/emulator"
)

// editorScript writes an editor: a shell script that gets the file as $1 and the number of the current run as $n.
func editorScript(t *testing.T, body string) (env []string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "editor")
	text := "#!/bin/sh\nrun=" + dir + "/run\nn=$(cat \"$run\" 2>/dev/null || echo 0); n=$((n+1)); echo $n > \"$run\"\n" + body + "\n"
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"VISUAL=" + file, "TMPDIR=" + dir}
}

// keptText returns the text of the file that the error names. kept is false if it names none.
func keptText(t *testing.T, screen string) (text string, kept bool) {
	t.Helper()
	name := regexp.MustCompile(`your text is in (\S+):\s`).FindStringSubmatch(screen)
	if name == nil {
		return "", false
	}
	data, err := os.ReadFile(name[1])
	if err != nil {
		t.Fatal(err)
	}
	return string(data), true
}

// TestEditAsks answers the question what to do with a text that is not JSON.
func TestEditAsks(t *testing.T) {
	t.Parallel()
	const question = "not JSON: line 2, column 8: invalid character 'x' looking for beginning of value. Edit again, write it as it is, or quit? [e/w/q] "
	for _, tt := range []struct {
		name   string
		answer string
		code   int
		value  string // the value in the store at the end
		kept   string // the text in the kept file; "" = no file
	}{
		{"edit", "e\n", 0, `{"a":2}`, ""},
		{"write", "w\n", 0, "{\n  \"a\": x\n}", ""},
		{"quit", "q\n", 1, `{"a":1}`, "{\n  \"a\": x\n}\n"},
		{"nothing", "\n", 1, `{"a":1}`, "{\n  \"a\": x\n}\n"},
		{"end", "\x04", 1, `{"a":1}`, "{\n  \"a\": x\n}\n"},
		{"interrupt", "\x03", 130, `{"a":1}`, "{\n  \"a\": x\n}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t)
			apptest.Put(t, store, "cfg", `{"a":1}`)
			env := editorScript(t, `if [ $n = 1 ]; then v=x; else v=2; fi; printf '{\n  "a": %s\n}\n' $v > "$1"`)
			s := converse(t, env, nil, "-u", store.URL(), "edit", "cfg")
			s.await(question)
			s.typeIn(tt.answer)
			if code := s.end(); code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, s.screen())
			}
			if got := apptest.Contents(store)["cfg"]; got != tt.value {
				t.Errorf("the store holds %q, want %q", got, tt.value)
			}
			if text, kept := keptText(t, s.screen()); text != tt.kept || kept != (tt.kept != "") {
				t.Errorf("kept %q, want %q: %s", text, tt.kept, s.screen())
			}
		})
	}
}

// TestEditHasTheTerminal: the editor reads what the user types, while edit holds a lock.
func TestEditHasTheTerminal(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "k", "old")
	env := editorScript(t, `trap 'echo caught' INT; echo ready; read -r line; read -r line; printf '%s\n' "$line" > "$1"`)
	s := converse(t, env, nil, "-u", store.URL(), "edit", "k", "--lock", "l")
	s.cmd.Stdout = nil
	s.await("editing k with ")
	s.typeIn("first\nsecond\n")
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.screen())
	}
	if got := apptest.Contents(store); got["k"] != "second" || len(got) != 1 {
		t.Errorf("the store holds %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(strings.TrimPrefix(env[1], "TMPDIR="), "sscli-edit-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestEditWaitsForALock: edit says which lock it waits for, and starts the editor when the lock is free.
func TestEditWaitsForALock(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "k", "old")
	apptest.Put(t, store, "l", "somebody")
	env := editorScript(t, `echo new > "$1"`)
	s := converse(t, env, nil, "-u", store.URL(), "edit", "k", "--lock", "l")
	s.await(`waiting for lock "l", held by "somebody"`)
	if strings.Contains(s.screen(), "editing") {
		t.Errorf("the editor runs without the lock: %s", s.screen())
	}
	apptest.Remove(store, "l")
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.screen())
	}
	if got := apptest.Contents(store)["k"]; got != "new" {
		t.Errorf("the store holds %q", got)
	}
}

// TestEditInProtectedContext: edit asks before it sends anything.
func TestEditInProtectedContext(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]int{"y\n": 0, "n\n": 2} {
		store := emulator.Start(t)
		apptest.Put(t, store, "k", "old")
		s := converse(t, append(protectedContext(t, store), editorScript(t, `echo new > "$1"`)...), nil, "edit", "k")
		s.await(`edit "k": context prod is protected. Continue? [y/N] `)
		if n := store.State().Connections; n != 0 {
			t.Errorf("%d connections before the answer", n)
		}
		s.typeIn(answer)
		if got := s.end(); got != code {
			t.Errorf("%q: exit code %d: %s", answer, got, s.screen())
		}
		if got, want := apptest.Contents(store)["k"], map[int]string{0: "new", 2: "old"}[code]; got != want {
			t.Errorf("%q: the store holds %q", answer, got)
		}
	}
}

// TestEditInTheShell: edit runs from a line of the shell, which then continues.
func TestEditInTheShell(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "k", "old")
	u := seat{server: store, env: editorScript(t, `read -r line; echo "$line" > "$1"`)}.start(t)
	u.ready()
	u.types("edit k\r")
	u.seesWithin("editing k with ")
	u.types("typed\n")
	u.ready()
	if got := apptest.Contents(store)["k"]; got != "typed" {
		t.Errorf("the store holds %q:\n%s", got, u.screen)
	}
	if got := u.runs("get k"); !strings.HasPrefix(got, "typed\n") {
		t.Errorf("the next line prints %q", got)
	}
	if n := store.State().Connections; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}
