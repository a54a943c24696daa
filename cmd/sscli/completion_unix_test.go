//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/full"
)

// A shellKind is a shell with completion. The end of its start-up file makes the shell print ready when it accepts
// input, and write the current line to the pipe on ^X^P.
type shellKind struct {
	name    string
	without string // a package that the start-up file does not load; "" = none
	args    func(dir string) []string
	file    string // the start-up file
	startup string
}

const ready = "READY>"

func shellKinds() []shellKind {
	bash := shellKind{
		name: "bash", file: "bashrc",
		args: func(dir string) []string { return []string{"--noprofile", "--rcfile", dir + "/bashrc", "-i"} },
		startup: `. <(sscli completion bash)
said() { printf '%s\n' "$READLINE_LINE" >"$PIPE"; READLINE_LINE= READLINE_POINT=0; }
bind -x '"\C-x\C-p": said'
bind 'set bell-style none'
PS1='READY''> '
`,
	}
	bare := bash
	bare.without = "bash-completion"
	bash.startup = ". /usr/share/bash-completion/bash_completion\n" + bash.startup
	return []shellKind{
		bash,
		bare,
		{
			name: "zsh", file: ".zshrc",
			args: func(string) []string { return []string{"-i"} },
			startup: `autoload -Uz compinit
compinit -u -d "$HOME/compdump"
. <(sscli completion zsh)
said() { print -r -- "$BUFFER" >"$PIPE"; BUFFER= }
zle -N said
bindkey '^X^P' said
setopt no_beep
PS1='READY''> '
`,
		},
		{
			name: "fish", file: "start.fish",
			args: func(dir string) []string { return []string{"--no-config", "-i", "-C", "source " + dir + "/start.fish"} },
			startup: `sscli completion fish | source
function said; commandline >$PIPE; commandline ''; end
bind \cx\cp said
function fish_prompt; echo 'READY''> '; end
function fish_greeting; end
`,
		},
	}
}

// inBash returns want in bash, and otherwise in other shells.
func (k shellKind) inBash(want, otherwise string) string {
	if k.name == "bash" {
		return want
	}
	return otherwise
}

// delegates returns more, unless the shell cannot complete another command's words.
func (k shellKind) delegates(more string) string {
	if k.without != "" {
		return ""
	}
	return more
}

// words returns the words into which the shell splits a line of sscli.
func (k shellKind) words(t *testing.T, line string) []string {
	t.Helper()
	echo := "sscli() { printf '%s\\0' \"$@\"; }\n"
	if k.name == "fish" {
		echo = "function sscli; printf '%s\\0' $argv; end\n"
	}
	out, err := exec.Command(k.name, "-c", echo+line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %q: %v\n%s", k.name, line, err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// A completer is a shell that runs in a terminal.
type completer struct {
	t    *testing.T
	tty  *os.File
	pipe string

	mu     sync.Mutex
	screen bytes.Buffer
	news   chan struct{}
}

// startShell starts a shell in a terminal, with the variables of env and its own home directory.
func startShell(t *testing.T, kind shellKind, dir string, env ...string) *completer {
	t.Helper()
	program, err := exec.LookPath(kind.name)
	if err == nil && kind.name == "bash" && kind.without == "" {
		_, err = os.Stat("/usr/share/bash-completion/bash_completion")
	}
	if err != nil {
		full.Missing(t, err)
	}
	if err := os.WriteFile(filepath.Join(dir, kind.file), []byte(kind.startup), 0o666); err != nil {
		t.Fatal(err)
	}
	c := &completer{t: t, pipe: filepath.Join(dir, "pipe"), news: make(chan struct{}, 1)}
	if err := syscall.Mkfifo(c.pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, kind.args(dir)...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "ZDOTDIR=" + dir, "PIPE=" + c.pipe,
		"TERM=xterm", "LC_ALL=C.UTF-8", "GORACE=atexit_sleep_ms=0"}, env...)
	if c.tty, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := c.tty.Read(buf)
			c.mu.Lock()
			c.screen.Write(buf[:n])
			c.mu.Unlock()
			select {
			case c.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		// Kill the shell: it has no state worth saving.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = c.tty.Close()
		<-read
	})
	c.await(ready)
	return c
}

func (c *completer) shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.String()
}

// await waits until text is on the screen.
func (c *completer) await(text string) {
	c.t.Helper()
	late := time.After(time.Minute)
	for !strings.Contains(c.shown(), text) {
		select {
		case <-c.news:
		case <-late:
			c.t.Fatalf("no %q on the screen:\n%q", text, c.shown())
		}
	}
}

// tab types line and the Tab key, and returns the completed line.
func (c *completer) tab(line string) string {
	c.t.Helper()
	if _, err := c.tty.WriteString(line + "\t\x18\x10"); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	// Opening a pipe blocks until the other end is open.
	text, err := exec.CommandContext(ctx, "cat", c.pipe).Output()
	if err != nil {
		c.t.Fatalf("%q: %v; on the screen:\n%q", line, err, c.shown())
	}
	return strings.TrimSuffix(string(text), "\n")
}

// TestCompletion completes lines in real shells, each in a terminal.
func TestCompletion(t *testing.T) {
	full.Slow(t)
	t.Parallel()
	store := emulator.Start(t)
	for _, key := range []string{"thermostat/setpoint", "thermostat/fan", "colon:key", "two:words here", "two:words",
		"quoted key", "it's", `say "hi"`, "run $(touch ran) 1", "run $(touch ran) 2", "tick `touch ran`", "semi;touch ran", "$HOME", "star*", "back\\slash",
		"new\nline", "bang!1", "tilde~", "{a,b}", " blank", "ends ", "ünïcode", "-dashed", "-t o", "line-1/mode=auto", "-k=one", "-k=two words", "mixed1\t\\'\"x", "mixed\n2"} {
		if _, err := store.Set(key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	// More keys than a shell lists without asking.
	for i := range 700 {
		for _, line := range []string{"east", "west"} {
			if _, err := store.Set(fmt.Sprintf("plant/%s/m%04d", line, i), "1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	// One store never answers, and the other does not know SCAN.
	silent := emulator.Start(t)
	silent.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true} })
	noScan := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NoScan: true}})
	for _, kind := range shellKinds() {
		t.Run(strings.TrimSuffix(kind.name+" without "+kind.without, " without "), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "some-file"), nil, 0o666); err != nil {
				t.Fatal(err)
			}
			contexts := filepath.Join(dir, "contexts.yaml")
			for _, name := range []string{"production", "staging"} {
				set := exec.Command("sscli", "context", "set", name, "-u", "mqtt://127.0.0.1:1", "--config", contexts)
				if out, err := set.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			c := startShell(t, kind, dir, "SSCLI_URL="+store.URL(), "SSCLI_CONFIG="+contexts, "NOSCAN="+noScan.URL(), patient+"=1")
			for _, test := range [][2]string{
				{"sscli ver", "sscli version "},
				{"sscli hlc par", "sscli hlc parse "},
				{"sscli set a b --tt", "sscli set a b --ttl "},
				{"sscli get a --vers", "sscli get a --version-only "},
				// Keys of the store are completed.
				{"sscli get thermostat/se", "sscli get thermostat/setpoint "},
				{"sscli get thermostat/setpoint therm", "sscli get thermostat/setpoint thermostat/fan "},
				{"sscli set thermostat/f", "sscli set thermostat/fan "},
				{"sscli set thermostat/fan some", "sscli set thermostat/fan some"},
				{"sscli watch --no-initial colon:", "sscli watch --no-initial colon:key "},
				{"sscli watch a -- cat some", "sscli watch a -- cat some-file "},
				{"sscli get a >some", "sscli get a >some-file "},
				{"sscli lock status colo", "sscli lock status colon:key "},
				{"sscli get some", "sscli get some"},
				{"sscli get pl", "sscli get plant/"},
				{"sscli get plant/e", "sscli get plant/east/"},
				{"sscli get plant/east/m069", "sscli get plant/east/m069"},
				{"sscli get plant/east/m0699", "sscli get plant/east/m0699 "},
				// If the store cannot be reached, the line stays as it is.
				{"sscli -u mqtt://127.0.0.1:1 get therm", "sscli -u mqtt://127.0.0.1:1 get therm"},
				{"sscli -u nonsense get therm", "sscli -u nonsense get therm"},
				{"sscli -u $NOSCAN get therm", "sscli -u $NOSCAN get therm"},
				// Output formats are completed, as a separate word and as part of the flag.
				{"sscli get a -o js", "sscli get a -o json "},
				{"sscli get a --output=js", "sscli get a --output=json "},
				{"sscli get a -o temp", "sscli get a -o template="},
				{"sscli get a --color ne", "sscli get a --color never "},
				{"sscli watch a --until del", "sscli watch a --until delete "},
				{"sscli watch a --until=val", "sscli watch a --until=value="},
				// Files are completed only where the command expects a file.
				{"sscli get a -f some", "sscli get a -f some-file "},
				{"sscli batch some", "sscli batch some-file "},
				{"sscli get a --timeout some", "sscli get a --timeout some"},
				{"sscli version some", "sscli version some"},
				{"sscli -c prod", "sscli -c production "},
				{"sscli --context prod", "sscli --context production "},
				{"sscli get --context some", "sscli get --context some"},
				// After --, the shell completes a command: its name, and then what the shell knows of it.
				{"sscli lock run thermostat/fan -- ssc", "sscli lock run thermostat/fan -- sscli "},
				{"sscli lock run -w 1m a -- sscli hlc par", "sscli lock run -w 1m a -- sscli hlc par" + kind.delegates("se ")},
				{"sscli lock run a -- cat some", "sscli lock run a -- cat some-file "},
				{"sscli serve -- ssc", "sscli serve -- sscli "},
				{"sscli watch a -- ssc", "sscli watch a -- sscli "},
				{"sscli lock run a ssc", "sscli lock run a ssc"},
				{"sscli get -- ssc", "sscli get -- ssc"},
				{"sscli context use stag", "sscli context use staging "},
				{"sscli context show x stag", "sscli context show x stag"},
				{"sscli nonsense some", "sscli nonsense some"},
			} {
				if got := c.tab(test[0]); got != test[1] {
					t.Errorf("%q became %q, want %q", test[0], got, test[1])
				}
			}
			// Completion does not wait long for a store that does not answer.
			const line = "sscli get therm"
			hasty := startShell(t, kind, t.TempDir(), "SSCLI_URL="+silent.URL())
			if got := hasty.tab(line); got != line || strings.Contains(hasty.shown(), "sscli:") {
				t.Errorf("%q became %q on a silent store:\n%s", line, got, hasty.shown())
			}
			// The shell inserts one word: the only matching key, or the common prefix of all matching keys.
			for _, test := range [][2]string{
				{"quoted", "quoted key"},
				{`quoted\ k`, "quoted key"},
				{`"quoted k`, "quoted key"},
				{`'quoted k`, "quoted key"},
				{"it", "it's"},
				{"say", `say "hi"`},
				{"run", "run $(touch ran) "},
				{`'run $(touch ran) 2`, "run $(touch ran) 2"},
				{"tick", "tick `touch ran`"},
				{"semi", "semi;touch ran"},
				{"two", "two:words"},
				{`two:words\ `, "two:words here"},
				{`"two:words h`, "two:words here"},
				{"star", "star*"},
				{"bang", "bang!1"},
				{"ün", "ünïcode"},
				{"back", kind.inBash(`back\slash`, "back")}, // another shell would drop the backslash
				{"new", kind.inBash("new\nline", "new")},
				{"mixed", "mixed"},
				{"mixed1", kind.inBash("mixed1\t\\'\"x", "mixed1")},
				{"ends", kind.inBash("ends ", "ends")},
				{"-- -d", "-dashed"},
				{"-- -t", "-t o"},
				{"-- -dashed -t", "-t o"},
				{"-dash", "-dash"}, // it would be read as a flag
				{"line-1/mode=a", "line-1/mode=auto"},
				{"line-1/mode=", "line-1/mode=auto"},
				{"-- -k=o", "-k=one"},
				{"-- -k=", "-k="},
				{"-- -k=t", "-k=two words"},
			} {
				line := c.tab("sscli get " + test[0])
				if got := kind.words(t, line); got[len(got)-1] != test[1] {
					t.Errorf("%q became %q, which are the words %q, want get and %q", test[0], line, got, test[1])
				}
			}
			// A second word is completed while the first one is on the line. The first word must not be executed.
			for _, first := range []string{"'run $(touch ran) 1", "semi", "$H", "it"} {
				line := c.tab("sscli get " + first)
				if got := c.tab(strings.TrimSpace(line) + " thermostat/f"); !strings.HasSuffix(got, " thermostat/fan ") {
					t.Errorf("%q, then another key, became %q", line, got)
				}
			}
			// What the user has typed is not carried out either.
			kept := filepath.Join(dir, "kept")
			if err := os.WriteFile(kept, []byte("kept"), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, first := range []string{"a >kept", "a > kept", "a >> kept", "a 2>kept", "a {fd}>kept", "a <kept", `"$(touch ran)"`} {
				line := "sscli get " + first + " thermostat/f"
				if got := c.tab(line); got != line+"an " {
					t.Errorf("%q became %q, want %q", line, got, line+"an ")
				}
			}
			c.tab("sscli get `touch ran` thermostat/f")
			if text, err := os.ReadFile(kept); err != nil || string(text) != "kept" {
				t.Errorf("a redirection was carried out: the file has %q, %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("a key of the store, or a part of the line, was run as a command")
			}
			if strings.Contains(c.shown(), "sscli:") {
				t.Errorf("completion printed an error:\n%s", c.shown())
			}
		})
	}
}

// TestCompletionRecipes follows docs/install.md in an empty home directory.
func TestCompletionRecipes(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Completions")
	_, recipes, _ := strings.Cut(section, "```sh\n")
	recipes, _, ok := strings.Cut(recipes, "# PowerShell")
	if !ok {
		t.Fatalf("docs/install.md has no recipes for completions: %q", recipes)
	}
	home := t.TempDir()
	run := exec.Command("sh", "-ec", recipes)
	run.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{".local/share/bash-completion/completions/sscli", ".bashrc", ".zfunc/_sscli", ".config/fish/completions/sscli.fish"} {
		if text, err := os.ReadFile(filepath.Join(home, name)); err != nil || !strings.Contains(string(text), "sscli") {
			t.Errorf("%s: %q, %v, want a completion of sscli", name, text, err)
		}
	}
}
