package directive

import (
	"testing"

	"github.com/sscli/sscli/repl"
)

// TestCommand: the command of a line is found after its directives.
func TestCommand(t *testing.T) {
	for line, want := range map[string]struct {
		first string
		ok    bool
	}{
		"get a":                      {"get", true},
		"time get a":                 {"get", true},
		"Expect 1 get a":             {"get", true},
		"repeat 3 get a":             {"get", true},
		"repeat 3 10ms time get a":   {"get", true},
		"time":                       {"", true},
		"expect 1":                   {"", true},
		"repeat 3":                   {"", true},
		"repeat":                     {"", false},
		"expect":                     {"", false},
		"sleep 1s":                   {"", false},
		"say get a":                  {"", false},
		"time expect 0 say anything": {"", false},
	} {
		words, err := repl.Split(line)
		if err != nil {
			t.Fatal(err)
		}
		command, ok := Command(words)
		first := ""
		if len(command) > 0 {
			first = command[0].Text
		}
		if first != want.first || ok != want.ok {
			t.Errorf("%s: %q, %v, want %q, %v", line, first, ok, want.first, want.ok)
		}
	}
}
