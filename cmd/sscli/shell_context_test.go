//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
)

// TestShellProtected: in a shell with a protected context, the prompt is the context's name. The shell asks before each
// line that writes, and the answer applies to that line only.
func TestShellProtected(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := seat{env: protectedContext(t, server), prompt: "prod> "}.start(t)
	u.ready()
	if out := u.runs("get a"); out != "(nil)" {
		t.Errorf("get: %s", out)
	}
	asks := func(line, what, answer string) string {
		t.Helper()
		u.types("\x0c")
		u.await("a clear screen", func(text string) bool { return text == "prod>" })
		before := len(server.Changes())
		u.types(line + "\r")
		u.sees(what + ": context prod is protected. Continue? [y/N] ")
		if n := len(server.Changes()); n != before {
			t.Errorf("%s: written before the answer", line)
		}
		u.types(answer)
		if strings.HasSuffix(answer, "\x03") { // with NOFLSH, input typed before Ctrl-C is kept
			u.sees("prod> y")
			u.types("\x15")
		}
		u.ready()
		return u.text()
	}
	for _, tt := range []struct {
		line, what, answer, shows string
		keys                      int
	}{
		{"set a 1", `set "a"`, "n\r", "sscli: set \"a\": cancelled, nothing was sent\n(exit code 2)", 0},
		{"set a 1", `set "a"`, "\r", "cancelled, nothing was sent\n(exit code 2)", 0},
		{"set a 1", `set "a"`, "y\x03", "^C", 0},
		{"set a 1", `set "a"`, "yes\r", "OK\nversion ", 1},
		{"set b 1", `set "b"`, "y\r", "OK\nversion ", 2}, // asked again
		{"expect 0 call SET c 1", `set "c"`, "y\r", "OK", 3},
		{"del a b", `del "a" and 1 more`, "n\r", "cancelled, nothing was sent\n(exit code 2)", 3},
		{"lock acquire l --holder me", `lock acquire "l"`, "y\r", "OK\ntoken ", 4},
	} {
		if screen := asks(tt.line, tt.what, tt.answer); !strings.Contains(screen, tt.shows) {
			t.Errorf("%s, %q: want %q on\n%s", tt.line, tt.answer, tt.shows, screen)
		}
		if n := len(server.Keys()); n != tt.keys {
			t.Errorf("%s, %q: %d keys, want %d", tt.line, tt.answer, n, tt.keys)
		}
	}
	if out := u.runs("set d 1 --yes"); !strings.HasPrefix(out, "OK\n") {
		t.Errorf("--yes: %s", out)
	}
	// The shell asks once for a whole batch.
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, []byte("set e 1\nset f 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	screen := asks("batch "+file, "(lines that write: 2)", "y\r")
	if n := strings.Count(screen, "[y/N]"); n != 1 || len(server.Keys()) != 7 {
		t.Errorf("asked %d times, %d keys:\n%s", n, len(server.Keys()), screen)
	}
}

// TestShellAsksForPasswordOnce: the password is asked for once, and later connections use it.
func TestShellAsksForPasswordOnce(t *testing.T) {
	t.Parallel()
	server := passwordStore(t)
	history := filepath.Join(t.TempDir(), "history")
	u := seat{
		server: server, args: []string{"--username", "ann", "--askpass", "--trace-file", history + ".trace"},
		env: []string{"SSCLI_HISTFILE=" + history},
	}.start(t)
	u.seesWithin("Password of ann at " + server.Addr().String() + ":")
	u.types(typedPassword + "\r")
	u.ready()
	u.runs("set a 1")
	if got := stored(server, "a"); got != "1" {
		t.Errorf("the store has %q", got)
	}
	server.DropAll()
	u.seesWithin("the next command reconnects")
	u.types("get a --trace\r")
	u.seesWithin("\n1\nversion ")
	u.seesWithin("-> CONNECT")
	u.ready()
	u.types("\x04")
	u.leaves()
	for _, text := range []string{u.screen.String(), read(t, history), read(t, history+".trace")} {
		if strings.Contains(text, typedPassword) || strings.Contains(text, "assword of ann") {
			t.Errorf("asked again, or the password is in\n%s", text)
		}
	}
	if text := read(t, history+".trace"); strings.Count(text, "-> CONNECT ") != 2 {
		t.Errorf("want two connections in\n%s", text)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestShellLocks: Ctrl-C ends a command that holds or waits for a lock, and returns to the prompt with the lock
// released.
func TestShellLocks(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := sitDown(t, server)
	free := func() {
		t.Helper()
		u.ready()
		if _, held := server.Get("l"); held {
			t.Errorf("the lock is held at the prompt:\n%s", u.screen)
		}
		if out := u.runs("lock status l"); !strings.HasPrefix(out, "free") {
			t.Errorf("lock status: %s", out)
		}
	}
	u.types("lock hold l\r")
	u.seesWithin("OK\ntoken ")
	if stored(server, "l") == "" {
		t.Error("the lock is not held")
	}
	u.types("\x03")
	free()

	// The command has the terminal: it gets the input, including Ctrl-C.
	u.types("lock run l -- sh -c 'echo u\"\"p; read -r line; echo \"read $line\"; exit 3'\r")
	u.seesWithin("\nup")
	u.types("hello\r")
	u.seesWithin("read hello\n(exit code 3")
	free()
	u.types("lock run l -- sh -c 'echo u\"\"p; exec sleep 1000'\r")
	u.seesWithin("\nup")
	if stored(server, "l") == "" {
		t.Error("the lock is not held")
	}
	u.types("\x03")
	u.seesWithin("(exit code 130")
	free()
	u.types("lock run l -- sh -c 'trap \"echo caught; exit 4\" INT; echo u\"\"p; while :; do read -r line; done'\r")
	u.seesWithin("\nup")
	u.types("\x03")
	u.seesWithin("caught\n(exit code 4")
	free()

	// Wait for a lock that another client holds.
	if _, err := server.Set("l", "other"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"lock hold l", "lock run l -- false"} {
		u.types(line + "\r")
		u.await("the line to be run", func(string) bool { return !u.screen.Pasting() })
		u.types("\x03")
		u.ready()
		if got := stored(server, "l"); got != "other" {
			t.Errorf("%s: the lock is held by %q", line, got)
		}
	}
	if n := server.State().Connections; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}
