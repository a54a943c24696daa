//go:build unix

package repl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chzyer/readline"
	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/testkit/screentest"
)

// These tests type the same keys into chzyer/readline with its defaults and into our editor. They expect
// readline's faults: when a new version fixes one, the test fails, and our workaround can be removed.

// Environment variables of an editor's process.
const (
	editorVar  = "REPL_TEST_EDITOR"  // name of the editor
	historyVar = "REPL_TEST_HISTORY" // its history file
	wordsVar   = "REPL_TEST_WORDS"   // candidates for Tab, separated by commas
	viVar      = "REPL_TEST_VI"      // vi mode unless empty
)

const (
	byReadline = "readline"
	byOurs     = "ours"
)

// resized is what readline's process prints after the terminal's width has changed.
const resized = "resized"

func TestMain(m *testing.M) {
	if editor := os.Getenv(editorVar); editor != "" {
		edit(editor)
		return
	}
	os.Exit(m.Run())
}

// edit is the main function of an editor's process. It writes each entry, quoted, to file
// descriptor 3 and returns at the end of the input. A panic is written there too.
func edit(editor string) {
	report := os.NewFile(3, "report")
	if err := debug.SetCrashOutput(report, debug.CrashOptions{}); err != nil {
		panic(err)
	}
	signal.Ignore(syscall.SIGHUP)
	entries := ourEntries
	if editor == byReadline {
		entries = func() iter.Seq2[string, error] { return readlineEntries(func() { fmt.Fprintln(report, resized) }) }
	}
	for text, err := range entries() {
		if err != nil {
			fmt.Fprintln(report, err)
		} else {
			fmt.Fprintf(report, "%q\n", text)
		}
	}
}

func completionWords(part string) (found []string) {
	for word := range strings.SplitSeq(os.Getenv(wordsVar), ",") {
		if word != "" && strings.HasPrefix(word, part) {
			found = append(found, word)
		}
	}
	return found
}

// wordCompleter completes the last word of a line. readline only lets it append text.
type wordCompleter struct{}

func (wordCompleter) Do(line []rune, pos int) (suffixes [][]rune, length int) {
	part := string(line[:pos])
	part = part[strings.LastIndexByte(part, ' ')+1:]
	for _, word := range completionWords(part) {
		suffixes = append(suffixes, []rune(word[len(part):]))
	}
	return suffixes, len([]rune(part))
}

// readlineEntries reads entries with readline, and calls resized after each change of the
// terminal's width.
func readlineEntries(resized func()) iter.Seq2[string, error] {
	rl, err := readline.NewEx(&readline.Config{
		Prompt: "> ", HistoryFile: os.Getenv(historyVar), VimMode: os.Getenv(viVar) != "", AutoComplete: wordCompleter{},
		// readline has no key for a line end within an entry; the tests type ¶.
		Listener: readline.FuncListener(func(line []rune, pos int, _ rune) ([]rune, int, bool) {
			return []rune(strings.ReplaceAll(string(line), "¶", "\n")), pos, strings.Contains(string(line), "¶")
		}),
		FuncOnWidthChanged: func(changed func()) {
			readline.DefaultOnWidthChanged(func() {
				changed()
				resized()
			})
		},
	})
	if err != nil {
		panic(err)
	}
	return func(yield func(string, error) bool) {
		for {
			text, err := rl.Readline()
			if errors.Is(err, io.EOF) || !yield(text, err) {
				return
			}
		}
	}
}

func ourEntries() iter.Seq2[string, error] {
	history, err := OpenHistory(os.Getenv(historyVar))
	if err != nil {
		panic(err)
	}
	var editor interface {
		ReadEntry(context.Context, string) (string, error)
	} = NewLineReader(os.Stdin, os.Stdout)
	if os.Getenv("TERM") != "dumb" {
		editor, err = NewTerminal(TerminalOptions{
			In: os.Stdin, Out: os.Stdout, History: history,
			Complete: func(_ []Word, part Word) (found []Candidate) {
				for _, word := range completionWords(part.Text) {
					found = append(found, Candidate{Text: word})
				}
				return found
			},
		})
		if err != nil {
			panic(err)
		}
	}
	return func(yield func(string, error) bool) {
		for {
			text, err := editor.ReadEntry(context.Background(), "> ")
			if err == nil {
				err = history.Add(text)
			}
			if errors.Is(err, io.EOF) || !yield(text, err) {
				return
			}
		}
	}
}

// A typist types into an editor and reads its screen.
type typist struct {
	t      *testing.T
	editor string
	pty    *os.File
	screen *screentest.Screen
	cmd    *exec.Cmd
	report *bufio.Scanner
}

// start starts an editor and waits for its prompt.
func start(t *testing.T, editor string, width int, env ...string) *typist {
	t.Helper()
	s := launch(t, editor, width, env...)
	drawn := make(chan struct{})
	go func() {
		_, _ = io.Copy(s.screen, s.pty)
		close(drawn)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-drawn
	})
	s.await("a prompt", func() bool { return strings.HasPrefix(s.screen.String(), ">") })
	return s
}

// launch starts an editor; the test must read its output.
func launch(t *testing.T, editor string, width int, env ...string) *typist {
	t.Helper()
	report, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &typist{t: t, editor: editor, screen: screentest.New(width, 24), cmd: exec.Command(self), report: bufio.NewScanner(report)}
	s.cmd.Env = append(os.Environ(), "TERM=xterm", editorVar+"="+editor, "GORACE=atexit_sleep_ms=0")
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.ExtraFiles = []*os.File{w}
	s.pty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Cols: uint16(width), Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		_ = s.pty.Close()
		_ = report.Close()
	})
	return s
}

// types types keys; ¶ is a line end within an entry.
func (s *typist) types(keys string) {
	s.t.Helper()
	if s.editor == byOurs {
		keys = strings.ReplaceAll(keys, "¶", "\x1b\r")
	}
	if _, err := s.pty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// leaves waits for the editor to end and returns its entries and, if it panicked, the panic.
func (s *typist) leaves() (entries []string) {
	late := time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	for s.report.Scan() {
		entries = append(entries, s.report.Text())
		if strings.HasPrefix(s.report.Text(), "panic: ") {
			break
		}
	}
	return entries
}

// reads waits until the editor has read an entry.
func (s *typist) reads(entry string) {
	s.t.Helper()
	for s.report.Text() != entry {
		if !s.report.Scan() {
			s.t.Fatalf("%s ended before it read %s", s.editor, entry)
		}
	}
}

func (s *typist) await(what string, holds func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.screen.Await(ctx, func(*screentest.Screen) bool { return holds() }); err != nil {
		column, row := s.screen.Cursor()
		s.t.Fatalf("%s: waited in vain for %s; the cursor is at %d,%d of\n%s", s.editor, what, column, row, s.screen)
	}
}

// TestReadlineEntries compares the entries for the same keys. If the editor's entries are nil, it does not
// have the feature.
func TestReadlineEntries(t *testing.T) {
	t.Parallel()
	const ctrlD = "\x04"
	wide := strings.Repeat("a", 50) + "," + strings.Repeat("b", 50) // wider than the terminal
	for _, tt := range []struct {
		name, keys     string
		env            []string
		ours, readline []string
	}{
		{name: "a paste is inserted", keys: "\x1b[200~a\rb\x1b[201~\r", ours: []string{`"a\nb"`}, readline: []string{`"a"`, `"b"`}},
		{name: "an open quote continues", keys: "set a 'b\rc'\r", ours: []string{`"set a 'b\nc'"`}, readline: []string{`"set a 'b"`, `"c'"`}},
		{name: "bytes that are not UTF-8", keys: "\xffa\r", ours: []string{`"\xffa"`}, readline: []string{`"�a"`}},
		{name: "a key without a meaning", keys: "\x0fa\r", ours: []string{`"a"`}, readline: []string{`"\x0fa"`}},
		{name: "Ctrl-Space", keys: "a\x00b\r", ours: []string{`"ab"`}, readline: []string{`"a"`, `"b"`}},
		{name: "a mouse", keys: "\x1b[<0;1;1Ma\r", ours: []string{`"a"`}, readline: []string{`"0;1;1Ma"`}},
		{name: "F1 of the Linux console", keys: "\x1b[[Aa\r", ours: []string{`"a"`}, readline: []string{`"Aa"`}},
		{name: "Home of tmux", keys: "b\x1b[1~a\r", ours: []string{`"ab"`}, readline: []string{`"ba"`}},
		{name: "Ctrl-Left is a word", keys: "b cc\x1b[1;5Da\r", ours: []string{`"b acc"`}, readline: []string{`"b cac"`}},
		{name: "Delete on an empty line", keys: "\x1b[3~a\r", ours: []string{`"a"`}},
		{name: "Ctrl-W in the first word", keys: "ab cd\x1b[D\x1b[D\x1b[D\x17x\r", ours: []string{`"x cd"`}, readline: []string{`"x"`}},
		{name: "Ctrl-T with one character", keys: "a\x14b\r", ours: []string{`"ab"`},
			readline: []string{"panic: runtime error: slice bounds out of range [2:1]"}},

		{name: "Ctrl-G without a history", keys: "\x12\x07a\r", ours: []string{`"a"`},
			readline: []string{"panic: runtime error: invalid memory address or nil pointer dereference"}},
		{name: "Ctrl-G restores the line", keys: "get 1\rget 2\rabc\x12get\x12\x07\r",
			ours: []string{`"get 1"`, `"get 2"`, `"abc"`}, readline: []string{`"get 1"`, `"get 2"`, `"get 2"`}},
		{name: "Backspace widens a search", keys: "get 1\rget 2\r\x12get 1\x7f\r",
			ours: []string{`"get 1"`, `"get 2"`, `"get 2"`}, readline: []string{`"get 1"`, `"get 2"`, `"get 1"`}},

		{name: "a completion that needs quotes", keys: "get two\t\r", env: []string{wordsVar + "=two words"},
			ours: []string{`"get \"two words\" "`}, readline: []string{`"get two words"`}},
		{name: "wide completions", keys: "get \t\t\x0e\r", env: []string{wordsVar + "=" + wide},
			ours: []string{`"get "`}, readline: []string{"panic: runtime error: integer divide by zero"}},

		// These show why there is no vi mode.
		{name: "vi: cursor keys", keys: "a\rb\x1b[Ac\r", env: []string{viVar + "=1"}, readline: []string{`"a"`, `"bc"`}},
		{name: "vi: r on an empty line", keys: "\x1brx\r", env: []string{viVar + "=1"},
			readline: []string{"panic: runtime error: index out of range [0] with length 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for editor, want := range map[string][]string{byReadline: tt.readline, byOurs: tt.ours} {
				if editor == byOurs && want == nil {
					continue
				}
				s := start(t, editor, 40, tt.env...)
				s.types(tt.keys + ctrlD)
				if diff := cmp.Diff(want, s.leaves()); diff != "" {
					t.Errorf("%s, entries (-want +got):\n%s", editor, diff)
				}
			}
		})
	}
}

// A view is the last lines on the screen, and the cursor's column.
type view struct {
	end    string
	column int
}

// TestReadlineScreen compares the screens for the same keys.
func TestReadlineScreen(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("0123456789", 6)
	smileys := strings.Repeat("😀", 9)
	han := strings.Repeat("日", 19)
	escapes := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(escapes, []byte("set a \x1b[2J\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name           string
		keys           string
		width          int
		resize         int // new width, if it changes
		last           string
		env            []string
		ours, readline view
	}{
		{name: "cursor among wide characters", keys: "日本\x02X", width: 40, ours: view{"> 日X本", 5}, readline: view{"> 日X本", 6}},
		{name: "cursor among combining characters", keys: "ae\u0301\x02\x02X", width: 40, ours: view{"> aXe\u0301", 4}, readline: view{"> aXe\u0301", 3}},
		{name: "emoji", keys: smileys + "😀X", width: 20,
			ours: view{"> " + smileys + "😀X", 3}, readline: view{"> " + smileys + "> " + smileys + "😀X", 3}},
		{name: "a row that a wide character does not fill", keys: han + han + "日日日XY", width: 41,
			ours: view{"> " + han + han + "日日日XY", 6}, readline: view{"> " + han + "> " + han + han + "日日日XY", 6}},
		{name: "an entry of two lines", keys: "a¶bX", width: 40, ours: view{"> a\n> bX", 4}, readline: view{"> a\n> a\nbX", 2}},
		{name: "a size that the line fills", keys: "a\r" + digits, width: 80, resize: 62, last: "X",
			ours: view{"> a\n> " + digits + "X", 1}, readline: view{"> " + digits + "X", 1}},
		{name: "characters that are not printed", keys: "\u202eX", width: 40, ours: view{"> <202E>X", 9}, readline: view{"> \u202eX", 3}},
		{name: "escape sequences in the history", keys: "\x10X", width: 40, env: []string{historyVar + "=" + escapes},
			ours: view{"> set a ^[[2JX", 14}, readline: view{"        X", 9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for editor, want := range map[string]view{byReadline: tt.readline, byOurs: tt.ours} {
				s := start(t, editor, tt.width, tt.env...)
				s.types(tt.keys)
				if tt.resize > 0 {
					s.await("the line", func() bool { return strings.HasSuffix(s.screen.String(), digits) })
					s.screen.Resize(tt.resize, 24)
					if err := pty.Setsize(s.pty, &pty.Winsize{Cols: uint16(tt.resize), Rows: 24}); err != nil {
						t.Fatal(err)
					}
					if editor == byReadline {
						s.reads(resized)
					}
					s.types(tt.last)
				}
				s.await(fmt.Sprintf("%q and column %d", want.end, want.column), func() bool {
					column, _ := s.screen.Cursor()
					return column == want.column && strings.HasSuffix("\n"+s.screen.String(), "\n"+want.end)
				})
			}
		})
	}
}

// TestReadlineDumbTerminal uses a terminal that can only print.
func TestReadlineDumbTerminal(t *testing.T) {
	t.Parallel()
	for editor, want := range map[string]bool{byReadline: true, byOurs: false} {
		s := start(t, editor, 40, "TERM=dumb")
		s.types("a\n")
		s.await("the entry", func() bool { return strings.HasPrefix(s.screen.String(), "> a\n>") })
		if got := s.screen.Escapes(); got != want {
			t.Errorf("%s sends escape sequences: %v, want %v", editor, got, want)
		}
	}
}

// TestReadlineHangup checks that a line is discarded when the terminal hangs up before Enter.
func TestReadlineHangup(t *testing.T) {
	t.Parallel()
	for editor, want := range map[string][]string{byReadline: {`"del important"`}, byOurs: nil} {
		s := launch(t, editor, 40)
		// The editor must have read the keys before the terminal is closed.
		s.types("del important")
		for !strings.HasSuffix(s.screen.String(), "> del important") {
			if _, err := io.CopyN(s.screen, s.pty, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.pty.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.leaves()); diff != "" {
			t.Errorf("%s, entries (-want +got):\n%s", editor, diff)
		}
	}
}

// TestReadlineSuspend checks that Ctrl-Z stops only the editor's process group, which does not include the
// parent.
func TestReadlineSuspend(t *testing.T) {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTSTP)
	defer signal.Stop(stopped)
	s := start(t, byOurs, 40)
	s.types("a\x1ab")
	s.await("the line again", func() bool { return strings.HasSuffix(s.screen.String(), "> ab") })
	select {
	case <-stopped:
		t.Error("our editor stops its parent")
	default:
	}
	s = start(t, byReadline, 40)
	s.types("a\x1a")
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("readline does not stop its parent")
	}
}

// TestReadlineHistory compares the history files.
func TestReadlineHistory(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	for _, tt := range []struct {
		editor    string
		mode      os.FileMode
		entry     string // parsed as "get a " and, on the next line, "b "
		most      int    // maximum number of lines; a longer file is cut
		keepsLate bool   // whether an entry is kept if its shell had the file open while another shell cut it
	}{
		{editor: byReadline, mode: 0o644, entry: `"b"`, most: 500, keepsLate: false},
		{editor: byOurs, mode: 0o600, entry: `"get a \nb "`, most: 2 * maxHistory, keepsLate: true},
	} {
		path := filepath.Join(t.TempDir(), "history")
		env := historyVar + "=" + path
		s := start(t, tt.editor, 40, env)
		s.types("get a ¶b \r\x04")
		s.leaves()
		if info, err := os.Stat(path); err != nil || info.Mode() != tt.mode {
			t.Errorf("%s: got mode %v, %v, want %v", tt.editor, info.Mode(), err, tt.mode)
		}
		s = start(t, tt.editor, 40, env)
		s.types("\x10\r\x04")
		if diff := cmp.Diff([]string{tt.entry}, s.leaves()); diff != "" {
			t.Errorf("%s, entries (-want +got):\n%s", tt.editor, diff)
		}

		if err := os.WriteFile(path, []byte(strings.Repeat("x\n", tt.most)), 0o600); err != nil {
			t.Fatal(err)
		}
		s = start(t, tt.editor, 40, env)
		s.types("one\rtwo\r") // the file has "one" once "two" has been read
		s.reads(`"two"`)
		start(t, tt.editor, 40, env)
		s.types("late\rlast\r")
		s.reads(`"last"`)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "late\n"); got != tt.keepsLate || strings.Count(string(text), "\n") > tt.most {
			t.Errorf("%s: keeps a late entry: %v, want %v; %d lines", tt.editor, got, tt.keepsLate, strings.Count(string(text), "\n"))
		}
	}
}

// TestReadlineReadsOn checks that, after a key without a function, the editor does not read input meant for
// the command. readline does if FuncFilterInputRune refuses the key.
func TestReadlineReadsOn(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	rl, err := readline.NewEx(&readline.Config{
		Stdin: io.NopCloser(io.MultiReader(strings.NewReader("\x0f"), strings.NewReader("a\r"), readerFunc(func([]byte) (int, error) {
			close(asked)
			return 0, io.EOF
		}))),
		Stdout: io.Discard, Stderr: io.Discard,
		FuncIsTerminal: func() bool { return false }, FuncGetWidth: func() int { return 80 }, FuncOnWidthChanged: func(func()) {},
		FuncMakeRaw: func() error { return nil }, FuncExitRaw: func() error { return nil },
		FuncFilterInputRune: func(r rune) (rune, bool) { return r, r != '\x0f' },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rl.Close()
	if text, err := rl.Readline(); err != nil || text != "a" {
		t.Fatalf("got %q, %v", text, err)
	}
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Error("readline does not read on")
	}

	keyboard, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	defer tty.Close()
	terminal, err := NewTerminal(TerminalOptions{In: tty, Out: tty})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	go func() { _, _ = io.Copy(io.Discard, keyboard) }()
	if _, err := keyboard.WriteString("\x0fa\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := terminal.ReadEntry(t.Context(), "> "); err != nil || text != "a" {
		t.Fatalf("got %q, %v", text, err)
	}
	if _, err := keyboard.WriteString("b\n"); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(tty).ReadString('\n')
		read <- text
	}()
	select {
	case text := <-read:
		if text != "b\n" {
			t.Errorf("the command reads %q", text)
		}
	case <-time.After(time.Minute):
		t.Error("the editor reads what is for the command")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestTerminalAnyKeys types random keys. After Ctrl-C, the next entry must be read as typed.
func TestTerminalAnyKeys(t *testing.T) {
	t.Parallel()
	history := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(history, []byte("get a\nset b \"1\nget 日本\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := []string{"a", "b", " ", "'", "日", "😀", "\u0301", "\xff", "\x00", "\x7f", "\r", "\t", "\x12", "\x1bb", "\x1bf", "\x1bd", "\x1b\x7f",
		"\x1b\r", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[3~", "\x1bOA", "\x1b[200~p\rq\x1b[201~"}
	for c := '\x01'; c < ' '; c++ {
		if !strings.ContainsRune("\x04\x1a\x1b", c) { // keys that leave, stop or escape
			keys = append(keys, string(c))
		}
	}
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := start(t, byOurs, 40+r.IntN(60), historyVar+"="+history, wordsVar+"=apple,apricot,b c")
		for round := range 10 {
			// Type no more than the terminal can hold: input that arrives between two entries is edited by
			// the line discipline, where Ctrl-C is a signal.
			var typed strings.Builder
			for range 200 {
				typed.WriteString(keys[r.IntN(len(keys))])
			}
			end := fmt.Sprintf("the end of %d", round)
			s.types(typed.String() + "\x07\x03" + end + "\r")
			s.await(fmt.Sprintf("seed %d: %q after %q", seed, end, typed.String()), func() bool {
				return strings.HasSuffix(s.screen.String(), "\n> "+end+"\n>")
			})
		}
		s.types("\x04")
		if entries := s.leaves(); len(entries) == 0 || entries[len(entries)-1] != `"the end of 9"` {
			t.Errorf("seed %d: %q", seed, entries)
		}
	}
}
