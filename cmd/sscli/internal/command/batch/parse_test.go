package batch

import (
	"os"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/repl"
)

// TestWrites: a batch recognizes lines that write, even after directives and with flags, and asks before them.
func TestWrites(t *testing.T) {
	b := newBatch(newApp(strings.NewReader(""), os.Stdout, os.Stderr), batchFlags{})
	for line, want := range map[string]bool{
		"get a":                                false,
		"set a 1":                              true,
		"SET a 1":                              true,
		"rm a":                                 true,
		"set a -5 --nx":                        true,
		"set a --frob":                         false, // is refused when it runs
		"call GET a":                           false,
		"call --fence 1696374425000:0:n DEL a": true,
		"expect 1 set a 1":                     true,
		"time repeat 3 10ms vdel a 1":          true,
		"repeat 3":                             false,
		"say set a 1":                          false,
		"frob a":                               false,
	} {
		words, err := repl.Split(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.writes(words); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// TestParse checks the keys that a line uses, and whether its request may be in flight with others.
func TestParse(t *testing.T) {
	b := newBatch(newApp(strings.NewReader(""), os.Stdout, os.Stderr), batchFlags{})
	for line, want := range map[string]struct {
		keys  string
		sends bool
	}{
		"get a":                 {"a", true},
		"Get -5":                {"-5", true},
		`set "--nx" 1 --nx`:     {"--nx", true},
		"del a b":               {"a b", false},
		"call GET a":            {"a", false},
		"scan":                  {"*", false},
		"ping":                  {"", false},
		"set a 1 --force-fence": {"a", false},
	} {
		words, err := repl.Split(line)
		if err != nil {
			t.Fatal(err)
		}
		task, err := b.parse(lineinput.Line{Number: 1, Words: words})
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var keys []string
		for _, c := range task.req.Commands {
			keys = append(keys, c.Key())
		}
		if got := strings.Join(keys, " "); got != want.keys || task.sends() != want.sends {
			t.Errorf("%s: %q, %v, want %q, %v", line, got, task.sends(), want.keys, want.sends)
		}
	}
	for _, line := range []string{"frob", "watch a", "get", "get a --frob", "keynotify a --frob", "set a"} {
		words, err := repl.Split(line)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.parse(lineinput.Line{Words: words}); err == nil {
			t.Errorf("%s: no error", line)
		}
	}
}
