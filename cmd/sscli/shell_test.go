//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/command/shell"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/testkit/freeport"
)

// TestShellLeaves: the shell ends at Ctrl-D on an empty line, and at the words for it. Ctrl-D within a line does not
// end it.
func TestShellLeaves(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	for _, tt := range []struct {
		keys string
		code int
	}{
		{"\x04", 0},
		{"ab\x01\x04\x04\x04", 0}, // within a line Ctrl-D deletes a character
		{"exit\r", 0},
		{"QUIT\r", 0},
		{".exit\r", 0},
		{"exit 7\r", 7},
		{"get missing; exit\r\x04", 0},
	} {
		u := sitDown(t, server)
		u.types(tt.keys)
		if code := u.leaves(); code != tt.code {
			t.Errorf("%q: exit code %d, want %d", tt.keys, code, tt.code)
		}
		if u.screen.Pasting() {
			t.Errorf("%q: bracketed paste is on when the shell has ended", tt.keys)
		}
	}
}

var changing = regexp.MustCompile(`(?m)\d{13}:\d+:[-\w]+(  \S+)?|\([\dhms.µ]+ ago\)|127.0.0.1:\d+|\d+\.\d{3}s$|\([\d.]+s\)`)

// slowly matches the duration that a shell prints after a command that was slow.
var slowly = regexp.MustCompile(`\nTIME$|, [\d.]+s(\)$)`)

func scrubScreen(text string) string {
	return changing.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasPrefix(s, "127"):
			return "HOST"
		case strings.HasSuffix(s, "ago)"):
			return "(AGE)"
		case strings.HasSuffix(s, "s"), strings.HasSuffix(s, "s)"):
			return "TIME"
		}
		return "VERSION"
	})
}

func TestShellCommands(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := sitDown(t, server)
	if diff := cmp.Diff("sscli: connected to mqtt://HOST\nType help for a list of commands, Ctrl-D to leave.\nHOST>", scrubScreen(u.text())); diff != "" {
		t.Errorf("the greeting (-want +got):\n%s", diff)
	}
	_, noForm := format.New(io.Discard, format.Options{Output: "xml"})
	for _, tt := range []struct{ line, want string }{
		{`set setpoint "21\x2e5" # degrees`, "OK\nversion VERSION"},
		{"get setpoint", "21.5\nversion VERSION  (AGE)"},
		{"sscli GET setpoint --version-only", "version VERSION  (AGE)"},
		{"get missing", "(nil)"},
		{"# nothing", ""},
		{"set a", "sscli: no value: expected VALUE, - for standard input, or -f FILE\n  try: set KEY VALUE [NX|NEX] [PX MS]  (help set)\n(exit code 2)"},
		{"ls 'a*'", "sscli: unknown command \"ls\"\n  try: scan 'a*'\n(exit code 2)"},
		{"ttl a", "sscli: unknown command \"ttl\": the protocol cannot tell a key's expiry\n  try: lock status a, if a is a lock\n(exit code 2)"},
		{"lock show a", "sscli: unknown lock command \"show\"\n  try: lock status a\n(exit code 2)"},
		{"auth", "sscli: unknown command \"auth\"\n  try: help connection\n(exit code 2)"},
		{"sett a", "sscli: unknown command \"sett\"\n  try: help set\n(exit code 2)"},
		{"set a --frob", "sscli: unknown flag: --frob\n  try: set KEY VALUE [NX|NEX] [PX MS]  (help set)\n(exit code 2)"},
		{`set a "\q"`, "sscli: byte 7: expected one of \\n \\r \\t \\\\ \\\" \\xHH, got \\q\n  try: help quoting\n(exit code 2)"},
		{"set a -", "sscli: the shell itself reads standard input: use -f FILE, or \"-\" in quotes for the value -\n  try: set KEY VALUE [NX|NEX] [PX MS]  (help set)\n(exit code 2)"},
		{`set a "-"`, "OK\nversion VERSION"},
		{"set temp -5", "OK\nversion VERSION"},
		{"serve", "sscli: serve cannot run in a shell\n  try: sscli serve in another terminal\n(exit code 2)"},
		{"shell", "sscli: shell cannot run in a shell\n  try: sscli shell in another terminal\n(exit code 2)"},
		{"-u mqtt://h get a", "sscli: --url on a line: a shell keeps one connection\n  try: leave the shell, then sscli --url ... shell\n(exit code 2)"},
		{"call NOPE", "sscli: nope: the store answered: unknown command\n  try: the state store has SET, GET, DEL, VDEL and KEYNOTIFY\n(exit code 5)"},
		{"-o json get missing", `{"op":"get","key":"missing","found":false,"rtt_ms":RTT}`},
		{"get missing", "(nil)"}, // the flag applied to one line only
		{"-o json set a", "{\"op\":\"error\",\"code\":2,\"kind\":\"usage\",\"message\":\"no value: expected VALUE, - for standard input, or -f FILE\",\"hint\":\"set KEY VALUE [NX|NEX] [PX MS]  (help set)\"}"},
		{".output raw", ""},
		{"get missing -o human", "(nil)"},
		{"set b 1", "OK      VERSION"},
		{"get b", "1"},
		{"repeat 2 get b", "1\n1"},
		{".output", "raw"},
		{".output xml", fmt.Sprintf("sscli: %v\n  try: help output", noForm)},
		{".output human", ""},
		{".timeout", "10s"},
		{".timeout 2s", ""},
		{".timeout 5", "sscli: .timeout: \"5\" has no unit: 5ms or 5s?\n  try: .timeout 5s\n(exit code 2)"},
		{".timeout", "2s"},
		{".timeout never", "sscli: .timeout: \"never\": expected a duration such as 500ms, 10s or 2m\n(exit code 2)"},
		{".outptu json", "sscli: unknown dot-command \".outptu\"\n  try: .output [FORM]\n(exit code 2)"},
		{".trace", "off"},
		{"expect 1 get missing", "(nil)"},
		{"expect 1 set a", "sscli: no value: expected VALUE, - for standard input, or -f FILE\n  try: set KEY VALUE [NX|NEX] [PX MS]  (help set)\nsscli: expected exit code 1, got 2\n(exit code 2)"},
		{"time get missing", "(nil)\ntook TIME"},
		{"repeat 2 get missing", "(nil)\n(nil)"},
		{"repeat 2 1ms time get missing", "(nil)\ntook TIME\n(nil)\ntook TIME"},
		{"repeat 0 get a", "sscli: repeat \"0\": must be a number of times, at least 1\n(exit code 2)"},
		{"exit 256", "sscli: expected exit [CODE], with an exit code of 0 to 255\n(exit code 2)"},
		{"batch -", "sscli: the shell itself reads standard input: use -f FILE, or \"-\" in quotes for the value -\n  try: batch FILE\n(exit code 2)"},
	} {
		got := slowly.ReplaceAllString(scrubScreen(u.runs(tt.line)), "$1")
		got = regexp.MustCompile(`"rtt_ms":[\d.]+`).ReplaceAllString(got, `"rtt_ms":RTT`)
		got = regexp.MustCompile(`(?m)\d{13}:\d+:StateStore`).ReplaceAllString(got, "VERSION")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
	if n := server.State().Connections; n != 1 {
		t.Errorf("%d connections, want one for all lines", n)
	}
}

func TestShellTrace(t *testing.T) {
	t.Parallel()
	u := sitDown(t, emulator.Start(t, emulator.Options{}))
	packets := regexp.MustCompile(`(->|<-) PUBLISH`)
	for _, tt := range []struct {
		line string
		want int
	}{
		{"get a", 0}, {"get a --trace", 2}, {"get a", 0}, {".trace on", 0}, {"get a", 2}, {"get a --trace=false", 0}, {".trace off", 0}, {"get a", 0},
	} {
		if got := len(packets.FindAllString(u.runs(tt.line), -1)); got != tt.want {
			t.Errorf("%s: %d messages in the trace, want %d\n%s", tt.line, got, tt.want, u.screen)
		}
	}
}

// TestShellTraceFile: one file gets the trace of the whole shell, and another the trace of the line that asks for it.
func TestShellTraceFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all, line := filepath.Join(dir, "all"), filepath.Join(dir, "line")
	u := seat{server: emulator.Start(t, emulator.Options{}), args: []string{"--trace-file", all}}.start(t)
	u.ready()
	u.runs("get a")
	u.runs("get b --trace-file " + line)
	u.types("\x04")
	u.leaves()
	for name, want := range map[string][]string{all: {"-> CONNECT ", "request GET a", "request GET b", "DISCONNECT"}, line: {"request GET b"}} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if strings.Count(string(text), w) != 1 {
				t.Errorf("%s: want %q once in\n%s", name, w, text)
			}
		}
		if name == line && strings.Contains(string(text), "GET a") {
			t.Errorf("another line's packets are in\n%s", text)
		}
	}
}

// TestShellSlowCommand: a slow command prints how long it took, unless the user asked it to take that time.
func TestShellSlowCommand(t *testing.T) {
	t.Parallel()
	u := sitDown(t, emulator.Start(t, emulator.Options{Latency: shell.Slow}))
	for line, want := range map[string]string{
		"get a":           "(nil)\n(TIME)",
		"call NOPE":       "sscli: nope: the store answered: unknown command\n  try: the state store has SET, GET, DEL, VDEL and KEYNOTIFY\n(exit code 5, TIME)",
		"get a -o raw -q": "",
		"sleep 0.6s":      "",
	} {
		got := regexp.MustCompile(`\d\.\d\ds`).ReplaceAllString(u.times(line), "TIME")
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func TestShellInterrupt(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := sitDown(t, server)
	u.types("del important\x03")
	u.sees("del important^C\n" + u.prompt)
	u.types("set a \"one\r")
	u.sees("...> ")
	u.types("two\x03")
	u.sees("...> two^C\n" + u.prompt)
	u.types("watch a\r")
	u.seesWithin("initial")
	u.types("\x03")
	u.seesWithin("end      interrupted")
	u.ready()
	u.types("sleep 1h\r")
	u.await("the line to be run", func(string) bool { return !u.screen.Pasting() })
	u.types("\x03")
	u.ready()
	// It is still the first connection, and it works.
	u.types("get a\r")
	u.sees("(nil)\n" + u.prompt)
	if n := server.State().Connections; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	u.types("\x04")
	if code := u.leaves(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestShellSignal: a signal ends the shell at the prompt, and the typed text is not run.
func TestShellSignal(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	_, err := server.Set("important", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		signal syscall.Signal
	}{{syscall.SIGTERM}, {syscall.SIGHUP}} {
		u := sitDown(t, server)
		u.types("del important")
		u.sees("del important")
		if err := u.cmd.Process.Signal(tt.signal); err != nil {
			t.Fatal(err)
		}
		u.leaves()
		if status := u.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != tt.signal {
			t.Errorf("ended by %v, want %v", status.Signal(), tt.signal)
		}
	}
	// The terminal goes away while a line is half typed.
	u := sitDown(t, server)
	u.types("del important")
	u.sees("del important")
	// Our pending read keeps the terminal open, so it needs something to read: a redrawn line.
	_ = u.cmd.Process.Signal(syscall.SIGSTOP)
	u.resizes(60, 24)
	if err := u.pty.Close(); err != nil {
		t.Fatal(err)
	}
	_ = u.cmd.Process.Signal(syscall.SIGCONT)
	u.leaves()
	if _, ok := server.Get("important"); !ok {
		t.Error("a line was run that nobody entered")
	}
}

func TestShellContinuation(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := sitDown(t, server)
	u.types("set a 'one\r two' # c\r")
	u.seesWithin("OK")
	u.ready()
	u.types("get a --show quoted\r")
	u.seesWithin(`"one\n two"`)
	u.ready()
	// The entry comes back as one entry, and can be edited.
	u.types("\x10\x10")
	u.sees("...>  two' # c")
	u.types("\x7f\x7f\x7f\x7f\x7f\x7f\x7f!' NEX\r")
	u.seesWithin("the key holds another value")
}

func TestShellPaste(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := sitDown(t, server)
	u.types("\x1b[200~set a 1\r\nset\tb \"\x032\"\nget a\n\x1b[201~")
	u.sees("set a 1\n" + strings.Repeat(" ", len(u.prompt)-5) + "...> set^Ib \"^C2\"\n" + strings.Repeat(" ", len(u.prompt)-5) + "...> get a\n" + strings.Repeat(" ", len(u.prompt)-5) + "...>")
	if _, ok := server.Get("a"); ok {
		t.Fatal("a pasted line was run by itself")
	}
	u.types("\r")
	u.seesWithin("\n1\nversion ")
	u.ready()
	if v := stored(server, "b"); v != "\x032" {
		t.Errorf("b is %q", v)
	}
	// An error stops the entry.
	u.types("\x1b[200~set\ndel a\n\n\ndel b\x1b[201~\r")
	u.seesWithin("2 later lines were not run")
	u.ready()
	if _, ok := server.Get("a"); !ok {
		t.Error("a line behind an error was run")
	}
	// The cost of a large entry is proportional to its length.
	value := strings.Repeat("0123456789abcdef", 4096)
	u.types("\x1b[200~set large " + value + "\x1b[201~")
	u.await("the paste", func(text string) bool { return strings.HasSuffix(text, "cdef") })
	u.types("\r")
	u.await("the end", func(string) bool {
		return stored(server, "large") == value
	})
}

func TestShellCompletion(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	for _, key := range []string{"thermostat/fan", "thermostat/setpoint", "two words", "-minus"} {
		if _, err := server.Set(key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	u := sitDown(t, server)
	for _, tt := range []struct{ keys, line string }{
		{"vd\t", "vdel "},
		{"get th\t", "get thermostat/"},
		{"get thermostat/s\t", "get thermostat/setpoint "},
		{"get \"ther\tf\t", "get thermostat/fan "},
		{"get two\t", `get "two words" `},
		{"get \"two w\t", `get "two words" `},
		{"get \"-\t", `get "-minus" `},
		{"set --tt\t", "set --ttl "},
		{"time expect 1 vd\t", "time expect 1 vdel "},
		{".tr\t", ".trace "},
		{".trace of\t", ".trace off "},
		{"help wa\t", "help watch "},
		{"get -f /et\t", "get -f /etc/"},
		{"get xyz\t", "get xyz"},
		{"getth\x02\x02\t", "get th"}, // in the middle of a line
		{"set new 1\rget ne\t", "get new "},
		// Where a lock is expected, locks that were named come before keys.
		{"lock status thermostat/fan\rlock status th\t", "lock status thermostat/fan "},
		{"get th\t", "get thermostat/"},
		{"lock status two\t", `lock status "two words" `},
	} {
		u.types(tt.keys)
		u.await(tt.line, func(text string) bool {
			column, _ := u.screen.Cursor()
			return lastLine(text) == u.prompt+strings.TrimRight(tt.line, " ") && (column == len(u.prompt+tt.line) || strings.Contains(tt.keys, "\x02"))
		})
		u.types("\x03")
		u.ready()
	}
	u.types("\x0cget th\t\t")
	u.sees("> get thermostat/\nthermostat/fan       thermostat/setpoint\n" + u.prompt + "get thermostat/")
	u.types("\x03\x0c.\t")
	u.seesWithin(".timeout  print or change the time limit of a request\n")
}

// TestShellCompletionWithoutScan: completion knows the keys named in this shell even if the store cannot list keys.
func TestShellCompletionWithoutScan(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NoScan: true}})
	if _, err := server.Set("unseen", "1"); err != nil {
		t.Fatal(err)
	}
	u := sitDown(t, server)
	u.runs("get used")
	u.types("get u\t")
	u.sees("get used")
}

func TestShellHistory(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	file := filepath.Join(t.TempDir(), "state", "sscli", "history")
	at := seat{server: server, env: []string{"SSCLI_HISTFILE=" + file}}
	first, second := at.start(t), at.start(t)
	first.ready()
	second.ready()
	first.runs("get first")
	second.runs("get second")
	first.types("set a 'x\r\\y' \r")
	first.ready()
	first.runs(" get secret")
	first.runs("set a " + strings.Repeat("v", 257))
	first.runs("-u mqtt://ann:hunter2@h get a")
	first.runs("get a --password hunter2")
	first.runs("get first")
	first.runs("get first")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("get first\nget second\nset a 'x\\n\\\\y' \nget first\n", string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	third := at.start(t)
	third.ready()
	third.types("\x1b[A")
	third.sees(third.prompt + "get first")
	third.types("\x1b[A")
	third.sees("...> \\y'")
	third.types("\x1b[A\x1b[B\x1b[B\x1b[B")
	third.ready()
	third.types("\x12sec")
	third.sees(`(search "sec") get second`)
	third.types("x")
	third.seesWithin(`(not found "secx")`)
	third.types("\x7f\r")
	third.sees(third.prompt + "get second\n(nil)\n" + third.prompt)
	third.types("abc\x12zzz\x07")
	third.sees(third.prompt + "abc")
}

func TestShellWithoutHistory(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	state := t.TempDir()
	u := seat{server: server, env: []string{"SSCLI_HISTFILE=", "XDG_STATE_HOME=" + state}}.start(t)
	u.ready()
	u.runs("get first")
	u.types("\x10")
	u.sees("> get first")
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	u = seat{server: server, env: []string{"SSCLI_HISTFILE=" + state}}.start(t)
	u.ready()
	u.seesWithin("the history will not be kept")
}

// TestShellWideCharacters: characters of all widths are typed, moved over and deleted.
func TestShellWideCharacters(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := seat{server: server, width: 40, height: 10}.start(t)
	u.ready()
	u.types("set 鍵 'é日本語😀👍🏽e\u0301\u202e'")
	u.sees("set 鍵 'é日本語😀👍e\u0301<202E>'")
	u.types("\x02\x02\x02\x02\x02\x02\x02") // before 😀: quote, U+202E, U+0301, e, U+1F3FD, 👍, 😀
	u.await("the cursor", func(string) bool {
		column, _ := u.screen.Cursor()
		return column == (len(u.prompt)+len("set ")+2+len(" '")+1+6)%40
	})
	u.types("X\r")
	u.seesWithin("OK")
	u.ready()
	if v := stored(server, "鍵"); v != "é日本語X😀👍🏽e\u0301\u202e" {
		t.Errorf("%q", v)
	}
	u.runs("del 鍵")
}

func TestShellResize(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := sitDown(t, server)
	line := "set key '" + strings.Repeat("0123456789", 12) + "'"
	u.types(line + "\x02\x02")
	u.await("the line", func(text string) bool {
		column, _ := u.screen.Cursor()
		return strings.HasSuffix(text, u.prompt+line) && column == (len(u.prompt+line)-2)%80
	})
	head, _, _ := strings.Cut(u.text(), u.prompt+line)
	for _, size := range [][2]int{{50, 24}, {33, 24}, {120, 30}, {200, 40}, {41, 12}} {
		u.resizes(size[0], size[1])
		line = line[:len(line)-2] + "x" + line[len(line)-2:]
		want := (len(u.prompt+line) - 2) % size[0]
		u.types("x")
		u.await("the line again", func(text string) bool {
			column, _ := u.screen.Cursor()
			return text == head+u.prompt+line && column == want
		})
	}
	u.types("\r")
	u.seesWithin("OK")
}

// TestShellSmallTerminal: an entry with more rows than the terminal is drawn around the cursor.
func TestShellSmallTerminal(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := seat{server: server, width: 40, height: 5}.start(t)
	u.ready()
	u.types("\x1b[200~set a '1\n2\n3\n4\n5\n6\n7\n8'\x1b[201~")
	u.sees("...> 8'")
	u.types("\x01")
	u.await("the beginning", func(string) bool {
		_, row := u.screen.Cursor()
		return strings.Contains(u.screen.Rows()[row], "set a '1")
	})
	u.types("\x05 x\r")
	u.seesWithin("after the value")
}

func TestShellDumbTerminal(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	u := seat{server: server, env: []string{"TERM=dumb"}}.start(t)
	u.ready()
	u.types("set a 'x\n")
	u.sees("...> ")
	u.types("y' NX\n")
	u.seesWithin("OK")
	u.ready()
	u.types("get a --show quoted\n")
	u.seesWithin(`"x\ny"`)
	u.ready()
	u.types("del a")
	u.sees("> del a")
	u.types("\x03")
	u.sees("^C\n" + u.prompt)
	u.types("set b 'x\n")
	u.sees("...> ")
	u.types("\x03")
	u.sees("...> ^C\n" + u.prompt)
	u.types("watch a\n")
	u.seesWithin("initial")
	u.types("\x03")
	u.seesWithin("end      interrupted")
	u.ready()
	u.types("\x04")
	if code := u.leaves(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if u.screen.Escapes() {
		t.Error("an escape sequence was sent")
	}
}

func TestShellReconnects(t *testing.T) {
	t.Parallel()
	addr := freeport.Address(t)
	u := seat{env: []string{"SSCLI_URL=mqtt://" + addr}, prompt: addr + " (not connected)> "}.start(t)
	u.ready()
	u.seesWithin("connection refused")
	server := listen(t, addr)
	u.types("set a 1\r")
	u.seesWithin("OK")
	u.prompt = addr + "> "
	u.ready()
	u.types("get a")
	u.sees("> get a")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	// The shell reports the lost connection above the line being typed, which stays.
	u.sees(addr + " (not connected)> get a")
	u.seesWithin("the next command reconnects")
	u.types("\r")
	u.seesWithin("refused\n  try: check host and port")
	u.prompt = addr + " (not connected)> "
	u.ready()
	server = listen(t, addr)
	t.Cleanup(func() { _ = server.Close() })
	u.types("get a\r")
	u.seesWithin("(nil)")
	u.prompt = addr + "> "
	u.ready()
	u.seesWithin("reconnected")
}

// TestShellTakenOver: another client takes over the client ID. The next command that the user types takes it back.
func TestShellTakenOver(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{})
	at := seat{server: server, args: []string{"--client-id", "me"}}
	first := at.start(t)
	first.ready()
	second := at.start(t)
	second.ready()
	first.seesWithin("taken over; the next command reconnects\n  try: use another --client-id")
	first.types("set a 1\r")
	first.seesWithin("OK")
	second.seesWithin("taken over")
}

func TestShellNeedsBrokerAndTerminal(t *testing.T) {
	t.Parallel()
	u := seat{}.start(t)
	if code := u.leaves(); code != 2 {
		t.Errorf("without a broker: exit code %d, want 2", code)
	}
	u.seesWithin("no broker is configured")
}

// stored returns the value of a key; "" = the key is missing.
func stored(server *emulator.Server, key string) string {
	e, _ := server.Get(key)
	return string(e.Value)
}
