package datasetcmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/datasetcmd"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// The same records as CSV and as stored JSON lines. No message finds the last record, because an earlier one has the
// same id.
const (
	pumpsCSV = "id,name,floor\npump-7,Pump 7,1\npump-8,Pump 8,2\nPump-9,,007\npump-8,Spare,2\n"
	pumps    = `{"id":"pump-7","name":"Pump 7","floor":1}
{"id":"pump-8","name":"Pump 8","floor":2}
{"id":"Pump-9","floor":"007"}
{"id":"pump-8","name":"Spare","floor":2}
`
)

// run runs a subcommand of dataset against a store.
var run = apptest.Runner(app.Command{Name: "dataset", New: datasetcmd.New})

// file writes a file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMatchText: a VALUE is JSON only if all of it is.
func TestMatchText(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	const padded = `{"id":"7 "}` + "\n" + `{"id":" 7"}` + "\n" + `{"id":7}` + "\n" + `{"id":"\uFFFD"}` + "\n"
	apptest.Put(t, store, "k", padded)
	for text, want := range map[string]string{
		" 7": `{"id":" 7"}`, "7 ": `{"id":"7 "}`, "7": `{"id":7}`, `" 7"`: `{"id":" 7"}`, "\uFFFD": `{"id":"\uFFFD"}`,
	} {
		if code, stdout, stderr := run(t, store.URL(), "match", "k", "id="+text); code != 0 || strings.TrimSpace(stdout) != want {
			t.Errorf("%q: exit code %d, %s%s, want %s", text, code, stdout, stderr, want)
		}
	}
	if code, stdout, _ := run(t, store.URL(), "match", "k", `id="\ud800"`); code != 1 || stdout != "" {
		t.Errorf("half of a surrogate pair: exit code %d, %s", code, stdout)
	}
	if code, stdout, stderr := run(t, store.URL(), "match", "k", "id=\xff"); code != 2 || !strings.Contains(stderr, "not UTF-8") {
		t.Errorf("not UTF-8: exit code %d, %s%s", code, stdout, stderr)
	}
}

// TestLoad: load writes the value only if it differs from the stored one, and never with --dry-run.
func TestLoad(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	devices := file(t, "devices.csv", pumpsCSV)
	code, _, stderr := run(t, store.URL(), "load", "pumps", devices, "--on", "id")
	if code != 0 || !strings.Contains(stderr, "4 records") || !strings.Contains(stderr, "pumps does not exist yet") ||
		!strings.Contains(stderr, `floor number, string`) || !strings.Contains(stderr, "warning: 1 record") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	first, _ := store.Get("pumps")
	if diff := cmp.Diff(pumps, string(first.Value)); diff != "" {
		t.Errorf("the value (-want +got):\n%s", diff)
	}
	changed := file(t, "changed.jsonl", strings.Replace(pumps, "Pump 7", "Pump seven", 1))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{devices}, "unchanged, nothing was written"},
		{[]string{changed, "--on", "id", "--dry-run", "-o", "human"}, "1 changed by id, 3 equal"},
	} {
		code, stdout, stderr := run(t, store.URL(), append([]string{"load", "pumps"}, tt.args...)...)
		if now, _ := store.Get("pumps"); code != 0 || !now.Version.Equal(first.Version) || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%q: exit code %d, version %v after %v\n%s%s", tt.args, code, now.Version, first.Version, stdout, stderr)
		}
	}
	if code, _, stderr := run(t, store.URL(), "load", "pumps", changed, "-q"); code != 0 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if got := apptest.Contents(store)["pumps"]; !strings.Contains(got, "Pump seven") {
		t.Errorf("the change was not written:\n%s", got)
	}
}

// TestLoadDoesWhatDryRunSays: a load writes a key exactly if --dry-run does not call it unchanged.
func TestLoadDoesWhatDryRunSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before string
		flags  []string
		action string
	}{
		{"", nil, "create"},
		{pumps, nil, "unchanged"},
		{pumps, []string{"--persist"}, "replace"},
		{"{\"id\":1}\n", nil, "replace"},
		{"no data set", []string{"--persist"}, "replace"},
	} {
		store := emulator.Start(t)
		if tt.before != "" {
			apptest.Put(t, store, "pumps", tt.before)
		}
		before, _ := store.Get("pumps")
		args := append([]string{"load", "pumps", file(t, "devices.csv", pumpsCSV), "-o", "template={{.action}}"}, tt.flags...)
		if code, stdout, stderr := run(t, store.URL(), append(args, "--dry-run")...); code != 0 || stdout != tt.action+"\n" {
			t.Errorf("%q %q: exit code %d, plan %q, want %q\n%s", tt.before, tt.flags, code, stdout, tt.action, stderr)
		}
		if now, _ := store.Get("pumps"); !now.Version.Equal(before.Version) {
			t.Errorf("%q %q: the dry run has written", tt.before, tt.flags)
		}
		code, _, stderr := run(t, store.URL(), args...)
		now, _ := store.Get("pumps")
		if wrote := !now.Version.Equal(before.Version); code != 0 || wrote != (tt.action != "unchanged") || string(now.Value) != pumps {
			t.Errorf("%q %q: exit code %d, wrote %v\n%s", tt.before, tt.flags, code, wrote, stderr)
		}
	}
}

// TestLoadRefuses: after an error in the file or in a flag, the key keeps its value.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "a", "before")
	for _, tt := range []struct{ name, text, flags, want string }{
		{"short.csv", "a,b\n1,2\n3\n", "", ":3:1: another number of cells than the header, which has 2"},
		{"semicolon.csv", "a;b\n1;2\n", "", "try: --separator ';'"},
		{"typed.csv", "a\n008\n", "--types a=number", `:2:1: column "a": "008" is not a number`},
		{"lines.jsonl", "{\"a\":1}\n{\"a\":x}\n", "", ":2:6: not JSON"},
		{"twice.jsonl", `{"a":1,"a":2}`, "", `the record has the field "a" twice`},
		{"empty.jsonl", "", "", "empty.jsonl has no records: expected at least one, with a field\n  try: sscli dataset load --help"},
		{"header.csv", "a,b\r", "--on a", "has no records"},
		{"devices.csv", pumpsCSV, "--on ID", "try: --on id"},
		{"devices.csv", pumpsCSV, "--on serial", "try: --on with one of the fields id, name, floor"},
		{"devices.csv", pumpsCSV, "--format xml", `--format "xml": expected json or csv`},
		{"numbers.jsonl", `{"a":1}`, "--types a=string", "numbers.jsonl:1:1: the records are JSON, and types are only for the columns of CSV"},
		{"numbers.txt", " [{\"a\":1}]", "--types a=string", "types are only for the columns of CSV"},
		{"numbers.csv", `{"a":1}`, "--format json --types *=string", "types are only for the columns of CSV"},
		{"numbers.jsonl", `{"a":1}`, "--separator ;", "the records are JSON, and a separator is only for CSV"},
		{"devices.csv", pumpsCSV, "--separator ab", `--separator "ab": expected one character, or tab`},
	} {
		args := append([]string{"load", "a", file(t, tt.name, tt.text)}, strings.Fields(tt.flags)...)
		if code, _, stderr := run(t, store.URL(), args...); code != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s %s: exit code %d, want 2 and %q\n%s", tt.name, tt.flags, code, tt.want, stderr)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "before"}, apptest.Contents(store)); diff != "" {
		t.Errorf("the store (-want +got):\n%s", diff)
	}
}

// TestLoadAfterAnotherWrite: load does not overwrite a value that another client wrote after load compared the records.
func TestLoadAfterAnotherWrite(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "pumps", "{\"id\":1}\n")
	reads := 0
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() != wire.VerbGet {
			return emulator.Action{}
		}
		if reads++; reads == 2 {
			if _, err := store.Set("pumps", "another"); err != nil {
				t.Error(err)
			}
		}
		return emulator.Action{}
	})
	code, _, stderr := run(t, store.URL(), "load", "pumps", file(t, "devices.csv", pumpsCSV))
	if got := apptest.Contents(store)["pumps"]; code != 1 || got != "another" || !strings.Contains(stderr, "try: the same command again") {
		t.Errorf("exit code %d, the value is %q\n%s", code, got, stderr)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "pumps", pumps)
	apptest.Put(t, store, "text", "no records")
	for _, tt := range []struct {
		args string
		code int
		want string // a part of the output
	}{
		{"pumps", 0, pumps},
		{"pumps -o jsonl", 0, pumps},
		{"pumps -o csv", 0, pumpsCSV},
		{"pumps -o human", 0, "pump-8  Spare       2\n"},
		{"pumps -o wide", 0, "Pump-9          007\n"},
		{"pumps -o json", 0, `"line":3,"record":{"id":"Pump-9","floor":"007"}}`},
		{"pumps -o template={{.line}}", 0, "1\n2\n3\n4\n"},
		{"pumps -o xml", 2, " or template=TEMPLATE; or here csv or jsonl"},
		{"missing", 1, "try: sscli dataset load missing FILE"},
		{"text", 1, "try: sscli get text shows the value; sscli dataset load text FILE replaces it"},
	} {
		code, stdout, stderr := run(t, store.URL(), append([]string{"show"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("show %s: exit code %d, want %d and %q\n%s%s", tt.args, code, tt.code, tt.want, stdout, stderr)
		}
	}
}

// TestDiff: the exit code of diff is 1 for any difference, including the order of the records.
func TestDiff(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "pumps", pumps)
	lines := strings.SplitAfter(pumps, "\n")
	same, reordered := file(t, "same.csv", pumpsCSV), file(t, "reordered.jsonl", lines[2]+lines[0]+lines[1]+lines[3])
	edited := file(t, "edited.jsonl", `{"id":"new"}`+"\n"+strings.Replace(lines[0], ":1}", ":3}", 1)+lines[1]+lines[3])
	for _, tt := range []struct {
		args            []string
		code            int
		changes, counts string
	}{
		{[]string{"pumps", same}, 0, "", "0 added, 0 removed, 0 changed, 4 equal"},
		{[]string{"pumps", reordered, "--on", "id"}, 1, "", "4 equal; the order differs"},
		{[]string{"pumps", edited, "--on", "id"}, 1, "added -:1\nchanged 1:2\nremoved 3:-\n", "1 added, 1 removed, 1 changed by id, 2 equal"},
		{[]string{"pumps", edited}, 1, "added -:1\nadded -:2\nremoved 1:-\nremoved 3:-\n", "2 added, 2 removed, 0 changed, 2 equal"},
		{[]string{"missing", same, "-q"}, 1, "added -:2\nadded -:3\nadded -:4\nadded -:5\n", ""}, // line 1 of the CSV file is the header
	} {
		code, stdout, stderr := run(t, store.URL(), append([]string{"diff"}, tt.args...)...)
		var changes strings.Builder
		for line := range strings.Lines(stdout) {
			columns := strings.Split(line, "\t")
			changes.WriteString(columns[0] + " " + columns[1] + ":" + columns[2] + "\n")
		}
		if diff := cmp.Diff(tt.changes, changes.String()); code != tt.code || !strings.Contains(stderr, tt.counts) || diff != "" {
			t.Errorf("%q: exit code %d, want %d and %q\n%s(-want +got):\n%s", tt.args, code, tt.code, tt.counts, stderr, diff)
		}
	}
}

// TestMatch: match prints the first of several matching records, and lists near misses if no record matches.
func TestMatch(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "pumps", pumps)
	lines := strings.SplitAfter(pumps, "\n")
	messages := file(t, "messages.jsonl", `{"asset":{"id":"pump-8"}}`+"\n"+`{"asset":{"id":"PUMP-7"}}`+"\n"+`{}`+"\n"+`{"asset":{"id":"pump-7"}}`+"\n")
	ids := file(t, "ids.jsonl", `{"id":"pump-7","of":{"name":"Pump 7"}}`)
	for _, tt := range []struct {
		args           []string
		code           int
		stdout, stderr string // stderr must contain this text
	}{
		{[]string{"pumps", "id=pump-7"}, 0, lines[0], ""},
		{[]string{"pumps", "id=pump-8", "floor=2"}, 0, lines[1], "1 record below match too; the first one wins"},
		{[]string{"pumps", "id=pump-8", "floor=1"}, 1, "", ""},
		{[]string{"pumps", "id=pump-9"}, 1, "", `nearly: line 3: id is "Pump-9", not "pump-9": another case`},
		{[]string{"pumps", "floor=7"}, 1, "", ""},
		{[]string{"pumps", `floor="2"`}, 1, "", `nearly: line 2: floor is 2, not "2": another type`},
		{[]string{"pumps", "--message", messages, "--on", "asset.id=id"}, 1, lines[1] + "\n\n" + lines[0], "messages.jsonl:3: asset.id of the message is missing: it equals nothing"},
		{[]string{"pumps", "--message", ids, "--on", "id"}, 0, lines[0], ""},
		{[]string{"pumps", "--message", ids, "--on", "id", "--on", "of.name=name"}, 0, lines[0], ""},
		{[]string{"missing", "id=1"}, 1, "", "try: sscli dataset load missing FILE"},
		{[]string{"pumps"}, 2, "", "missing FIELD=VALUE or --message FILE"},
		{[]string{"pumps", "id"}, 2, "", `"id": expected FIELD=VALUE`},
		{[]string{"pumps", "id=1", "--on", "id"}, 2, "", "--on without --message"},
		{[]string{"pumps", "--message", messages}, 2, "", "--message: expected --on FIELD for each field that is compared"},
	} {
		code, stdout, stderr := run(t, store.URL(), append([]string{"match"}, tt.args...)...)
		if diff := cmp.Diff(tt.stdout, stdout); code != tt.code || diff != "" || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%q: exit code %d, want %d and %q\n%s(-want +got):\n%s", tt.args, code, tt.code, tt.stderr, stderr, diff)
		}
	}
}
