package watch_test

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/watch"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

// run runs watch against a store; nil = none.
var run = apptest.Runner(app.Command{Name: "watch", New: watch.New})

// TestEnds: what ends a watch, with which exit code and reason.
func TestEnds(t *testing.T) {
	store := emulator.Start(t)
	if _, err := store.Set("here", "1"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   string
		code   int
		reason string // named in the last line of output
	}{
		{"here --until set", 0, "until"},
		{"here --until value=1", 0, "until"},
		{"gone --until delete", 0, "until"},
		{"here gone --until delete --for 10s", 0, "until"},
		{"here --for 20ms", 0, "for"},
		{"here --until delete --for 20ms", fault.CodeNo, "for"},
		{"here --no-initial --until set --for 20ms", fault.CodeNo, "for"},
	} {
		code, stdout, stderr := run(t, store.URL(), strings.Fields(tt.args)...)
		if code != tt.code || !strings.HasSuffix(stdout, "end\t"+tt.reason+"\n") {
			t.Errorf("watch %s: %d, %q, want %d and %q\n%s", tt.args, code, stdout, tt.code, tt.reason, stderr)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{"", "k --for 0", "k --for -1s", "k --audit 5", "k --until x", "k -n -1", "k --buffer 0", "k --field a[", "k --", "k --rescan 1s", "--match k --rescan 0", "--match k --rescan 5"} {
		if code, stdout, _ := run(t, "", strings.Fields(args)...); code != fault.CodeUsage || stdout != "" {
			t.Errorf("watch %s: %d, %q, want a usage error", args, code, stdout)
		}
	}
}
