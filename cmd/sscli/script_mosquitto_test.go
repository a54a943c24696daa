package main

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/mosquitto"
)

// TestScriptOnMosquitto runs the same scripts on Mosquitto, an independent broker, with stores attached to it. A script
// ends at the first line that needs the emulator to be a server, and the test lists these scripts.
func TestScriptOnMosquitto(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	t.Parallel()
	if *update {
		return // -update rewrites the scripts in TestScript only
	}
	if !haveMosquitto() {
		t.Skip("mosquitto is not installed")
	}
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	params := scriptParams(t, true)
	dir := t.TempDir()
	var cut, left []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		script, why := forMosquitto(string(text))
		switch {
		case script == "":
			left = append(left, name+" ("+why+")")
			continue
		case why != "":
			cut = append(cut, name+" ("+why+")")
		}
		copied := filepath.Join(dir, name)
		if err := os.WriteFile(copied, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		params.Files = append(params.Files, copied)
	}
	t.Logf("%d scripts, of which these end early: %s", len(params.Files), strings.Join(cut, ", "))
	t.Logf("left out: %s", strings.Join(left, ", "))
	testscript.Run(t, params)
}

// forMosquitto returns the part of a script that works with an attached store, and the reason why the rest does not.
// The part is "" if nothing in it uses a store.
func forMosquitto(script string) (can, why string) {
	head, files, _ := strings.Cut(script, "\n-- ")
	starts, runs := false, false
	var lines []string
	for line := range strings.Lines(head + "\n") {
		if why = wantsServer(line); why != "" {
			break
		}
		starts = starts || strings.HasPrefix(line, "emulator")
		runs = runs || strings.HasPrefix(line, "code ")
		lines = append(lines, line)
	}
	if !starts || !runs {
		return "", cmp.Or(why, "no store")
	}
	if why != "" {
		lines = append(lines, "begins session want\n")
	}
	return strings.Join(lines, "") + "\n-- " + files, why
}

// wantsServer returns what a line of a script requires of the emulator that an attached store cannot do; "" = nothing.
func wantsServer(line string) string {
	words := strings.Fields(line)
	for len(words) > 0 && strings.HasPrefix(words[0], "[") { // a condition
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	switch words[0] {
	case "fastforward", "signal", "proxy":
		return words[0]
	case "code":
		switch words[len(words)-1] {
		case "taken.sh":
			return "DISCONNECT 0x8E, which Mosquitto 2.0 does not send"
		case "attach.sh":
			return "a broker without a store"
		}
	case "emulator":
		for _, option := range words[1:] {
			name, _, _ := strings.Cut(strings.Trim(option, "'"), "=")
			if !slices.Contains([]string{"variant", "max-keys", "deny", "skew"}, name) {
				return name
			}
		}
	}
	return ""
}

// scriptBegins fails the script unless the second file begins with the first.
func scriptBegins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: begins FILE FILE")
	}
	begin, whole := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if begin == "" || !strings.HasPrefix(whole, begin) {
		ts.Fatalf("%s does not begin %s:\n%s", args[0], args[1], gocmp.Diff(whole[:min(len(whole), len(begin))], begin))
	}
}

// attach starts a Mosquitto with a store for a script, and sets SSCLI_URL to its address. Each script has its own,
// which takes 5 ms and keeps the scripts independent.
func attach(ts *testscript.TestScript, o emulator.Options) {
	address := mosquitto.Start(mosquittoTester{ts: ts}, "set_tcp_nodelay true\nmax_queued_messages 0", mosquitto.Anonymous).Addresses[0]
	engine := emulator.AttachOptions{Address: address, ClientID: client.NewClientID(), MaxKeys: o.MaxKeys, ScanPage: o.ScanPage, Policy: o.Policy, Variants: o.Variants, Skew: o.Skew}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := emulator.Attach(ctx, engine)
	ts.Check(err)
	ts.Defer(func() { ts.Check(store.Close()) })
	ts.Setenv("SSCLI_URL", "mqtt://"+address)
	_, port, err := net.SplitHostPort(address)
	ts.Check(err)
	ts.Setenv("PORT", port)
}
