package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/pipenet"
	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/repl"
)

// inBubble calls test in virtual time, because completion waits only briefly for the store. The shell connects to a
// store with these options.
func inBubble(t *testing.T, u *user, o emulator.Options, test func(*testing.T, *shell, *emulator.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		o.Listener = l
		store := emulator.Start(t, o)
		s := newShell(t, store, u)
		s.conn.options.Dial = l.Dial
		test(t, s, store)
	})
}

// candidates completes part after the words of line. A candidate ends with an ellipsis if the word may continue.
func candidates(t *testing.T, s *shell, line, part string) (texts []string) {
	t.Helper()
	words, err := repl.Split(line)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.complete(words, repl.Word{Text: part}) {
		if c.Open {
			c.Text += "…"
		}
		texts = append(texts, c.Text)
	}
	return texts
}

func TestComplete(t *testing.T) {
	t.Parallel()
	inBubble(t, &user{}, emulator.Options{}, testComplete)
}

func testComplete(t *testing.T, s *shell, store *emulator.Server) {
	if _, err := s.conn.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"thermostat/fan", "thermostat/setpoint", "two words", "-minus"} {
		apptest.Put(t, store, key, "1")
	}
	s.conn.RememberKey("thermostat/gone")
	s.conn.locks.add("locks/build")
	for _, tt := range []struct {
		line, part string
		want       string // candidates, separated by |
	}{
		// Shell words, directives and commands are completed.
		{"", "", "exit|expect|get|help|lock|quit|repeat|say|set|sleep|time"}, // no dot-commands
		{"", "s", "say|set|sleep"},
		{"", "e", "exit|expect"},
		{"", ".t", ".timeout|.trace"},
		{"sscli", "ge", "get"},
		{"time expect 1", "ge", "get"},
		{"time", ".t", ""}, // a dot-command is only valid at the beginning of a line
		{"expect", "1", ""},
		{"exit", "", ""},
		{".trace", "o", "on|off"},
		{".output", "te", "template=…"},
		{".output raw", "", ""},
		{".timeout", "", ""},
		{"lock", "stat", "status"},
		{"set", "--tt", "--ttl"},
		{"get -o", "ra", "raw"},
		// Keys of the store are completed, and keys and locks that earlier lines named.
		{"get", "th", "thermostat/fan|thermostat/gone|thermostat/setpoint"},
		{"repeat 2 get thermostat/fan", "thermostat/f", ""},
		{"get", "two", "two words"},
		{"get", "xyz", ""},
		{"lock status", "lo", "locks/build"},
		{"lock status", "", "locks/build"},
		{"lock status", "two", "two words"}, // no lock begins like this
		{"set thermostat/fan", "th", ""},
	} {
		if diff := cmp.Diff(tt.want, strings.Join(candidates(t, s, tt.line, tt.part), "|")); diff != "" {
			t.Errorf("%q after %q (-want +got):\n%s", tt.part, tt.line, diff)
		}
	}
	// A quoted word is not a flag.
	quoted := s.complete([]repl.Word{{Text: "get"}}, repl.Word{Text: "-m", Quoted: true})
	if diff := cmp.Diff([]repl.Candidate{{Text: "-minus"}}, quoted); diff != "" {
		t.Errorf("-m in quotes (-want +got):\n%s", diff)
	}
}

// TestCompleteFiles: the file of a flag is completed, with a separator after a directory.
func TestCompleteFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + string(filepath.Separator)
	if err := os.Mkdir(dir+"values", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"value.json", ".hidden"} {
		if err := os.WriteFile(dir+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newShell(t, emulator.Start(t), &user{})
	for part, want := range map[string][]string{
		dir + "va":          {dir + "value.json", dir + "values" + string(filepath.Separator) + "…"},
		dir:                 {dir + "value.json", dir + "values" + string(filepath.Separator) + "…"},
		dir + ".h":          {dir + ".hidden"},
		dir + "values.json": nil,
	} {
		if diff := cmp.Diff(want, candidates(t, s, "set a -f", part)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", part, diff)
		}
	}
}

// TestCompleteWithoutScan: the keys and locks that lines name are remembered for completion. A store without SCAN is
// asked only once.
func TestCompleteWithoutScan(t *testing.T) {
	t.Parallel()
	entries := []string{"set key 1", "get keys", "get " + strings.Repeat("k", maxKept+1), "lock status key/lock", "lock status --observe soon key/bad"}
	inBubble(t, &user{entries: entries}, emulator.Options{Variants: emulator.Variants{NoScan: true}}, testCompleteWithoutScan)
}

func testCompleteWithoutScan(t *testing.T, s *shell, store *emulator.Server) {
	scans := 0
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() == wire.VerbScan {
			scans++
		}
		return emulator.Action{}
	})
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{"get": {"key", "keys"}, "lock status": {"key/lock"}} {
		if diff := cmp.Diff(want, candidates(t, s, line, "k")); diff != "" {
			t.Errorf("k after %q (-want +got):\n%s", line, diff)
		}
	}
	candidates(t, s, "get", "ke")
	if scans != 1 {
		t.Errorf("%d SCAN, want 1", scans)
	}
}
