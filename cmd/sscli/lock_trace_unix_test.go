//go:build unix

package main

import (
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

// left returns the text of a terminal without the lines that were redrawn.
func left(screen string) string {
	var lines []string
	for line := range strings.Lines(screen) {
		lines = append(lines, line[strings.LastIndex(line, "\r\x1b[K")+1:])
	}
	return regexp.MustCompile(`\x1b\[K`).ReplaceAllString(strings.Join(lines, ""), "")
}

// TestLockTraceLive: on a terminal the renewals of a holder share a live line, which fits the terminal. Other output
// appears above it.
func TestLockTraceLive(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	c := converse(t, []string{"SSCLI_URL=" + server.URL(), "TERM=xterm", "NO_COLOR=1"}, func(cmd *exec.Cmd) { cmd.Stdout = cmd.Stderr },
		"lock", "trace", "build", "--timeline")
	if err := pty.Setsize(c.terminal, &pty.Winsize{Rows: 24, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	c.await("free           build\n")
	s, err := client.Dial(t.Context(), client.Options{Address: server.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Lock(t.Context(), "build", client.LockOptions{Holder: []byte("\x1b[31mjob-7"), TTL: 24 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c.await(" times, every ") // the line of a slow machine may show several more renewals
	if err := pty.Setsize(c.terminal, &pty.Winsize{Rows: 24, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	c.await("\r\x1b[K" + format.Cut(`build held by "\x1b[31mjob-7": renewed 4 times`, 39)) // cut to the narrower terminal
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await("released or deleted")
	// A message about a lost connection appears above the line.
	if _, err := s.AcquireLock(t.Context(), "build", client.LockOptions{Holder: []byte("b"), TTL: 10 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RenewLock(t.Context(), "build", client.LockOptions{Holder: []byte("b"), TTL: 10 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	c.await(`build held by "b": renewed once`)
	server.DropAll()
	c.await("all keys are watched")
	c.await("held           build")
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	<-c.closed
	if got := c.cmd.ProcessState.String(); got != "signal: interrupt" {
		t.Errorf("it ended with %s", got)
	}
	trace, chart, _ := strings.Cut(left(c.screen()), "  end      ")
	trace = strings.ReplaceAll(trace, "\n    ", " ") // a long line continues on the next one
	for _, rule := range []struct{ pattern, with string }{
		{`(?m)^\d\d:\d\d:\d\d\.\d{3}Z`, "CLOCK"},
		{`\d{13}:\d+:StateStore`, "TOKEN"},
		{`renewed \d+ times`, "renewed N times"},
		{`\d[\d.]*m?s\b`, "DUR"},
	} {
		trace = regexp.MustCompile(rule.pattern).ReplaceAllString(trace, rule.with)
	}
	trace = columns(trace)
	want := columns(`sscli: waiting for changes of lock "build"; Ctrl-C ends
CLOCK  free           build
CLOCK  acquired       build  by "\x1b[31mjob-7"  (free for at least DUR)  token TOKEN
CLOCK  released or deleted  build  held by "\x1b[31mjob-7"  (renewed N times, every DUR; held for DUR; inferred: deleted DUR after the last renewal, before the next was overdue)  token TOKEN
CLOCK  acquired       build  by "b"  (free for DUR)  token TOKEN
`)
	if diff := cmp.Diff(want, trace[:min(len(want), len(trace))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, part := range []string{"connection lost: the broker closed the connection; connecting again", "CLOCK held build by \"b\" (renewed once"} {
		if !strings.Contains(trace, part) {
			t.Errorf("the trace has no %q:\n%s", part, trace)
		}
	}
	rows := 0
	for line := range strings.Lines(chart) {
		if strings.HasPrefix(line, "  ") && format.Columns(strings.TrimSuffix(line, "\n")) > 40 {
			t.Errorf("wider than the terminal: %q", line)
		}
		if strings.ContainsAny(line, "─┼") {
			rows++
		}
	}
	if rows < 3 { // two holders and the legend
		t.Errorf("the chart has %d rows:\n%s", rows, chart)
	}
}

// TestInstrumentsInShell: in a shell, the commands that inspect locks use the connection of the shell.
func TestInstrumentsInShell(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	u := sitDown(t, server)
	for _, tt := range []struct{ line, want string }{
		{"lock acquire build --holder job-7 -o raw", "VERSION"},
		{"lock list b* -o raw", "build	maybe	job-7	VERSION	AGE"},
		{"lock list -q -o template={{.name}}", "build"},
		{"lock list nobody -o raw", "nobody	free	-	-	-"},
		{"set artifact 1 -o raw", "OK	VERSION"},
		{"explain artifact --lock build -o raw", "refused	fencing_required	VERSION	VERSION	VERSION	lock"},
		{"explain artifact -o template={{.hint}}", "sscli explain artifact --ask asks the store"},
		{"lock trace build --guards artifact --for 20ms -o raw -q", "held	build	job-7	VERSION	-	seen\nend	for"},
		{"lock trace", "sscli: missing NAME\n  try: lock trace NAME...  (help lock trace)\n(exit code 2)"},
	} {
		got := scrubScreen(u.runs(tt.line))
		got = regexp.MustCompile(`VERSION +\d+$`).ReplaceAllString(got, "VERSION AGE")
		if diff := cmp.Diff(columns(tt.want), columns(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
	if n := server.State().Connections; n != 1 {
		t.Errorf("%d connections, want one for all lines", n)
	}
}

// columns replaces each run of tabs and spaces by one space, because a screen shows both alike.
func columns(text string) string {
	return regexp.MustCompile(`[\t ]+`).ReplaceAllString(text, " ")
}
