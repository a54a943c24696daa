//go:build unix

package screenshot

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/full"
)

var update = flag.Bool("update", false, "draw the picture again")

const picture = "../../docs/terminal.svg"

func TestPicture(t *testing.T) {
	full.Program(t, "bash")
	drawn, err := draw(run(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(drawn), new(struct{})); err != nil {
		t.Errorf("the picture is not XML: %v\n%s", err, drawn)
	}
	if *update {
		if err := os.WriteFile(picture, []byte(drawn), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(normal(string(old)), normal(drawn)); diff != "" {
		t.Errorf("%s is not what a terminal shows; go test ./scripts/screenshot -update (-picture +terminal)\n%s", picture, diff)
	}
}

// normal returns a picture without the texts that differ from run to run.
func normal(text string) string {
	for _, c := range [][2]string{
		{`\d{13}:\d+:StateStore`, "VERSION"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`, "TIME"},
		{`\(\d+m?s ago\)`, "(AGE)"},
		{`\d+m?s ago(</tspan>)? *`, "AGE$1 "}, // a cell of a table
		{`\d\d:\d\d:\d\d\.\d{3}Z`, "CLOCK"},
	} {
		text = regexp.MustCompile(c[0]).ReplaceAllString(text, c[1])
	}
	return text
}

// run runs each command with bash in a terminal.
func run(t *testing.T) []turn {
	t.Helper()
	bin := t.TempDir()
	if testing.Short() {
		t.Skip("builds the program")
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "sscli"), "../../cmd/sscli").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	store := emulator.Start(t)
	env := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "SSCLI_URL=" + store.URL(),
		"TERM=xterm-256color", "LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + bin}
	session, err := os.ReadFile("session.txt")
	if err != nil {
		t.Fatal(err)
	}
	var turns []turn
	for command := range strings.Lines(string(session)) {
		command = strings.TrimSpace(command)
		turns = append(turns, turn{command, typed(t, command, env)})
	}
	return turns
}

// typed returns the bytes that a command writes to its terminal.
func typed(t *testing.T, command string, env []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-c", command)
	cmd.Env = env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: columns})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	defer tty.Close()
	out, err := io.ReadAll(tty)
	if err != nil && !errors.Is(err, syscall.EIO) { // how a terminal reports its end on Linux
		t.Fatalf("%s: %v", command, err)
	}
	if err := cmd.Wait(); ctx.Err() != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func TestDraw(t *testing.T) {
	got, err := draw([]turn{{"echo '<'", "\x1b[1ma\x1b[22m & \x1b[31mb\r\nc\x1b[0m" + strings.Repeat("d", columns) + "\r\n"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<tspan font-weight="bold">echo &#39;&lt;&#39;</tspan>`,
		`<tspan font-weight="bold">a</tspan> &amp; <tspan fill="#f07178">b</tspan></text>`,
		`<tspan fill="#f07178">c</tspan>` + strings.Repeat("d", columns-1) + `</text>`,
		`>d</text>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, bad := range []string{"\x1b[2J", "\x1b[45m"} {
		if _, err := draw([]turn{{"x", bad + "\n"}}); err == nil {
			t.Errorf("%q was drawn", bad)
		}
	}
}
