//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/sscli/sscli/emulator"
)

// shownOnTerminal runs a program whose output is a terminal, and returns what the terminal received.
func shownOnTerminal(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"HOME=" + cmd.Dir, "TERM=xterm-256color"}, env...)
	f, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	said, err := io.ReadAll(f)
	if err != nil && !errors.Is(err, syscall.EIO) { // on Linux, EIO is the end of a terminal
		t.Fatal(err)
	}
	if _, failed := errors.AsType[*exec.ExitError](cmd.Wait()); failed && cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("%q: %v", args, cmd.ProcessState)
	}
	return string(said)
}

// colors matches the only control sequences that sscli itself writes.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// harmful returns the first part of text that a terminal would act on; "" = none.
func harmful(text string) string {
	text = colors.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 || r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return fmt.Sprintf("%q", text[max(0, i-20):min(len(text), i+20)])
		}
	}
	return ""
}

// evils are values that somebody might store to trick a reader. One value contains several of them, because each value
// is tried in many ways. Values that are not UTF-8 are separate, because JSON has them in base64.
func evils() map[string][]string {
	return map[string][]string{
		"text": {
			"\x1b]52;c;ZXZpbA==\x07", "\x1b]0;evil\x1b\\", // clipboard, title
			"\x1b[2J\x1b[1;1H\x1b[8mhidden", "\u009b31m\u0090evil\u009c", // cursor, C1
			"a\u202eb\u2066c\u2069\u200f", "\u200b\u200d\ufeff\u2028\u2029", // bidi overrides, invisible
			"\x05\x1b[c\x1b[6n\x1bZ", "\U000e0041\U000f0000", // answerback, tags
		},
		"line":  {"ok\r\x08\x08ready: mqtt://evil\n$ "},
		"bytes": {"\x9b31m", "\x9d52;c;ZXZpbA==\x9c", "\xff\xfe"},
	}
}

// TestTerminal: a terminal displays anything that is stored, sent by a broker, or typed, but never acts on it.
func TestTerminal(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	// Check that harmful recognizes each of them.
	for _, all := range evils() {
		for _, evil := range all {
			if harmful(shownOnTerminal(t, nil, "printf", "%s", evil)) == "" {
				t.Errorf("printf of %q is taken for harmless", evil)
			}
		}
	}
	for name, all := range evils() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some commands wait for requests to expire
			evil := strings.Join(all, "")
			key, value := "key"+evil, "value"+evil
			server := emulator.Start(t)
			if _, err := server.Set(key, value); err != nil {
				t.Fatal(err)
			}
			refusing := emulator.Start(t)
			refusing.Intercept(func(r emulator.Request) emulator.Action {
				return emulator.Action{Rewrite: func(a *emulator.Answer) {
					switch r.Verb() {
					case "GET":
						a.Payload = []byte("-ERR " + strings.NewReplacer("\r", "", "\n", "").Replace(evil) + "\r\n")
					case "SET":
						a.Set("__ts", evil)
					case "DEL":
						a.Payload = []byte(evil)
					default:
						a.Set("__stat", "500")
						a.Set("__stMsg", evil)
					}
				}}
			})
			script := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(script, []byte("get '"+key+"'\n"+evil+"\nget 'x"+evil+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"get", key}, {"get", key, "missing"}, {"get", key, "--lines"}, {"set", key, value}, {"set", "a" + evil, "1", "--nex"},
				{"vdel", key, "other" + evil}, {"del", "x" + evil}, {"call", "GET", key}, {"call", evil, evil}, {"call", "SCAN", "*"},
				{"watch", key, "-n", "0", "--for", "50ms"}, {"batch", script}, {"batch", "-" + evil},
				{evil}, {"get", key, "--" + strings.TrimLeft(evil, "-")}, {"get", key, "-f", "no/" + evil}, {"set", "a", "-f", evil},
				{"hlc", "parse", evil}, {"set", "a", "1", "--fence", evil}, {"set", "a", "1", "PX", evil}, {"help", evil},
				{"get", "a", "-u", "mqtt://" + evil}, {"get", "a", "-H", evil}, {"get", "a", "-t", evil}, {"get", "a", "--ca-file", evil, "--tls"},
				{"get", "a", "--response-topic", evil}, {"get", "a", "-i", evil}, {"get", "a", "--username", evil}, {"get", "a", "--sat-file", evil},
				{"serve", "--users", evil}, {"serve", "--allow", evil}, {"serve", "--listen", evil}, {"serve", "--", evil},
				{"serve", "--sat-audience", evil, "--sat-key", evil + "/x"},
			} {
				for _, form := range [][]string{
					{"-o", "human"}, {"-o", "json"}, {"-o", "template={{.key}} {{.value}} {{.message}} {{printf \"%s %v\" .key .value}}"},
					{"-v", "--trace"}, {"--color", "never", "--trace"},
				} {
					brokers := []*emulator.Server{server}
					if slices.Contains([]string{"get", "set", "del", "call", "watch"}, args[0]) && args[1] != "a" {
						brokers = append(brokers, refusing)
					}
					for _, broker := range brokers {
						line := append(append([]string{}, form...), args...)
						said := shownOnTerminal(t, []string{"SSCLI_URL=" + broker.URL(), "SSCLI_TIMEOUT=1s"}, program, line...)
						if bad := harmful(said); bad != "" {
							t.Errorf("%q: the terminal got %s", line, bad)
						}
					}
				}
			}
		})
	}
}
