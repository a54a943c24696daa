//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

// anyBytes returns random bytes of all kinds that might cause trouble on the way.
func anyBytes(r *rand.Rand, least int) string {
	sorts := []func() string{
		func() string { return string(rune(' ' + r.IntN(95))) },
		func() string { return string([]byte{byte(r.IntN(256))}) },
		func() string { return string(rune(r.IntN(0x3000))) },
		func() string { return string(rune(r.IntN(0x110000))) }, // includes invalid code points
		func() string {
			return []string{"\r\n", "\n", "\t", "\x00", "'", `"`, `\`, `\x41`, "#", " ", "-", "--", "$", "\x1b[2J", "\x1b[201~", "\x03", "\x04", "日本", "e\u0301", "👍🏽", "\ufdd0", "\U0010ff0a"}[r.IntN(22)]
		},
	}
	var b strings.Builder
	for range least + r.IntN(12) {
		b.WriteString(sorts[r.IntN(len(sorts))]())
	}
	return b.String()
}

type stringOrBytes struct {
	Key      string
	KeyB64   []byte `json:"key_b64"`
	Value    string
	ValueB64 []byte `json:"value_b64"`
}

func (s stringOrBytes) bytes() (key, value string) {
	return s.Key + string(s.KeyB64), s.Value + string(s.ValueB64)
}

// TestBytesSurvive: keys and values of any bytes survive quoting in a line, typing and pasting the line into a shell,
// the store, JSON on a screen, a line of another batch, and another store. The JSON survives batch --load and a third
// store.
func TestBytesSurvive(t *testing.T) {
	t.Parallel()
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	arguments, first, second, third := emulator.Start(t), emulator.Start(t), emulator.Start(t), emulator.Start(t)
	u := seat{server: first, width: 150, height: 40, env: []string{"SSCLI_TIMEOUT=1m"}}.start(t)
	u.ready()
	want := make(map[string]string)
	got := make(map[string]string)
	var load strings.Builder // the JSON on the screen
	for i := range 60 {
		key, value := anyBytes(r, 1), anyBytes(r, 0)
		line := "set " + format.Word(key) + " " + format.Word(value)
		switch {
		case i%3 == 1: // pasted, quoted as it was typed elsewhere
			line = "\x1b[200~" + line + "\x1b[201~"
		case i%3 == 2 && !strings.ContainsAny(key+value, "'\r") && !strings.Contains(key+value, "\x1b[201~"):
			line = "\x1b[200~set '" + key + "' '" + value + "'\x1b[201~" // the bytes themselves
		}
		want[key] = value
		// Pass them as arguments, which cannot contain NUL. A value of "-" alone means standard input.
		if !strings.Contains(key+value, "\x00") && value != "-" {
			runSSCLI(t, arguments, "", "set", "--", key, value)
			if got := stored(arguments, key); got != value {
				t.Errorf("set %q %q: the store has %q", key, value, got)
			}
		}
		if out := u.runs(line); !strings.Contains(out, "OK\nversion") {
			t.Fatalf("%q: %s", line, out)
		}
		if got := stored(first, key); got != value {
			t.Fatalf("%q: the store has %q, want %q", line, got, value)
		}
		out := u.runs("-o json get " + format.Word(key))
		var result stringOrBytes
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatalf("%q: %v in %s", key, err, out)
		}
		k, v := result.bytes()
		if k == "" {
			t.Fatalf("%q: %s", key, out)
		}
		got[k] = v
		load.WriteString(strings.ReplaceAll(out, "\n", "") + "\n")
	}
	var batch, gets strings.Builder
	for key, value := range got {
		fmt.Fprintf(&batch, "set %s %s\n", format.Word(key), format.Word(value))
		fmt.Fprintf(&gets, "get %s\n", format.Word(key))
	}
	runSSCLI(t, second, batch.String(), "-")
	if n := second.State().Keys; n != len(want) {
		t.Errorf("%d keys in the second store, want %d", n, len(want))
	}
	// The JSON that get printed can be loaded unchanged: from the screen, from the program, and from the program of the
	// store that was loaded from it.
	runSSCLI(t, third, load.String(), "batch", "--load", "-")
	wantStored(t, third, want)
	fourth := emulator.Start(t)
	runSSCLI(t, fourth, runSSCLI(t, third, gets.String(), "-o", "json", "batch", "-"), "batch", "--load", "--inflight", "16", "-")
	wantStored(t, fourth, want)
	again := json.NewDecoder(strings.NewReader(runSSCLI(t, second, gets.String(), "-o", "json", "batch", "-")))
	for range got {
		var result stringOrBytes
		if err := again.Decode(&result); err != nil {
			t.Fatal(err)
		}
		key, value := result.bytes()
		if want[key] != value {
			t.Errorf("%q is %q, want %q", key, value, want[key])
		}
		// Pass keys as arguments too, which cannot contain NUL.
		if !strings.Contains(key, "\x00") {
			if raw := runSSCLI(t, fourth, "", "get", "--", key); raw != value {
				t.Errorf("get %q: %q, want %q", key, raw, value)
			}
		}
	}
}

// wantStored fails the test unless the store holds exactly these keys.
func wantStored(t *testing.T, server *emulator.Server, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if entry, ok := server.Get(key); !ok || string(entry.Value) != value {
			t.Errorf("%q is %q, %t, want %q", key, entry.Value, ok, value)
		}
	}
	if n := len(server.Keys()); n != len(want) {
		t.Errorf("%d keys are stored, want %d", n, len(want))
	}
}

// runSSCLI runs the program and returns its standard output.
func runSSCLI(t *testing.T, server *emulator.Server, stdin string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0] = "sscli"
	cmd.Env = []string{"SSCLI_URL=" + server.URL(), "GORACE=atexit_sleep_ms=0"}
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sscli %q: %v", args, err)
	}
	return string(out)
}
