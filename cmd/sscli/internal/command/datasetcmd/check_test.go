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
	"github.com/sscli/sscli/format"
)

// flow refers to the data set pumps by its alias pump, and uses the field location of its records.
const flow = `datasets:
- key: pumps as pump
  inputs: [$source.deviceId, $context.id]
  expression: $1 == $2
map:
- inputs: [$context(pump).location]
  output: location
`

// runCheck writes files into a new working directory, and runs dataset check there.
func runCheck(t *testing.T, url string, files map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return apptest.Run(t, []app.Command{{Name: "dataset", New: datasetcmd.New}}, nil, append([]string{"dataset", "check", "-u", url}, args...)...)
}

// TestRecordsInTheStore: check reports exactly the expected findings for each value of the data set.
func TestRecordsInTheStore(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		missing     bool // the key does not exist
		findings    string
		note        string
	}{
		{name: "resolved", value: `{"id":7,"location":"hall 1"}`},
		{name: "some lack a field", value: "{\"id\":7,\"location\":\"hall 1\"}\n{\"id\":8}\n",
			note: `flow.yaml:6: 1 of 2 records of pumps have no field "location" (line 2)`},
		{name: "unreachable", value: "{\"id\":7,\"location\":1}\n{\"id\":7,\"location\":2}\n", note: "flow.yaml:2: pumps: 1 record"},
		{name: "another case", value: `{"ID":7,"location":"hall 1"}`,
			findings: "flow.yaml:3: no record of \"pumps\" has the field \"id\"; the records have ID\n",
			note:     "flow.yaml:2: pumps: 1 record has no id that can be compared (line 1)"},
		{name: "another field", value: `{"id":7,"hall":1}`,
			findings: "flow.yaml:6: no record of \"pumps\" has the field \"location\"; the records have id, hall\n"},
		{name: "no data set", missing: true,
			findings: "flow.yaml:2: there is no data set \"pumps\": each rule that needs it is skipped; sscli dataset load pumps FILE\n"},
		{name: "an array", value: `[{"id":7}]`,
			findings: "flow.yaml:2: the value of \"pumps\" is not a data set: line 1, column 1: expected an object such as {\"id\":\"1\"}, and found an array; sscli dataset load pumps FILE writes one\n"},
		{name: "empty", value: "",
			findings: "flow.yaml:2: the data set \"pumps\" has no records: each rule that needs it is skipped; sscli dataset load pumps FILE\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := emulator.Start(t)
			if !tt.missing {
				apptest.Put(t, store, "pumps", tt.value)
			}
			code, stdout, stderr := runCheck(t, store.URL(), map[string]string{"flow.yaml": flow}, "flow.yaml")
			if diff := cmp.Diff(tt.findings, stdout); (code == 1) != (tt.findings != "") || code > 1 || diff != "" {
				t.Errorf("exit code %d (-want +got):\n%s%s", code, diff, stderr)
			}
			if !strings.Contains(stderr, tt.note) || tt.note == "" && strings.Contains(stderr, "flow.yaml:") {
				t.Errorf("notes:\n%swant %q", stderr, tt.note)
			}
		})
	}
}

// TestReferences: an alias that is not defined is a finding. Each use of a key is checked, and findings are in the
// order of the files and lines.
func TestReferences(t *testing.T) {
	store := emulator.Start(t)
	apptest.Put(t, store, "pumps", `{"id":7,"location":"hall 1"}`)
	files := map[string]string{
		"b.yaml": strings.NewReplacer("(pump)", "(pumps)", "$context.id", "$context.serial").Replace(flow),
		"a.yaml": strings.NewReplacer("(pump)", "(pomp)").Replace(flow),
		"c.yaml": "datasets: [\n",
	}
	code, stdout, stderr := runCheck(t, store.URL(), files, "b.yaml", "a.yaml", "c.yaml")
	want := `b.yaml:3: no record of "pumps" has the field "serial"; the records have id, location
b.yaml:6: no data set is called "pumps"; a key with an alias is only known by its alias: write $context(pump)
a.yaml:6: no data set is called "pomp"; write $context(pump)
c.yaml:1: not YAML: expected a value: a bracket or brace has no counterpart
`
	if diff := cmp.Diff(want, stdout); code != 1 || diff != "" || !strings.Contains(stderr, "1 data set in 3 files checked: 4 findings") {
		t.Errorf("exit code %d (-want +got):\n%s%s", code, diff, stderr)
	}
}

// TestDataAsStored: a file of --data without an extension of its own has what the store would have, whatever the key's
// name ends with.
func TestDataAsStored(t *testing.T) {
	for _, key := range []string{"pumps", "site.v1", "pumps.csv", "pumps.json"} {
		for value, code := range map[string]int{
			`{"id":7,"location":"hall 1"}`:   0,
			`[{"id":7,"location":"hall 1"}]`: 1,
			"id,location\n7,hall 1\n":        1,
		} {
			files := map[string]string{"flow.yaml": strings.Replace(flow, "pumps", key, 1), "data/" + key: value}
			got, stdout, stderr := runCheck(t, "mqtt://127.0.0.1:1", files, "flow.yaml", "--data", "data")
			if got != code || (code == 1) != strings.Contains(stdout, "is not a data set") {
				t.Errorf("%s %q: exit code %d, want %d\n%s%s", key, value, got, code, stdout, stderr)
			}
		}
	}
}

// TestTwoFilesOfAKey: two files of --data for one key are an error, as they are for apply.
func TestTwoFilesOfAKey(t *testing.T) {
	for _, names := range [][2]string{{"pumps", "pumps.csv"}, {"pumps.jsonl", "pumps.csv"}, {"pumps.json", "pumps.tsv"}} {
		files := map[string]string{"flow.yaml": flow, "data/" + names[0]: `{"id":7,"location":1}`, "data/" + names[1]: "id,location\n7,1\n"}
		code, stdout, stderr := runCheck(t, "mqtt://127.0.0.1:1", files, "flow.yaml", "--data", "data")
		want := format.Path(filepath.Join("data", names[0])) + " and " + format.Path(filepath.Join("data", names[1])) + ": both are the key pumps"
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, want 2 and %q\n%s%s", names, code, want, stdout, stderr)
		}
		if code, _, stderr := apptest.Run(t, []app.Command{{Name: "dataset", New: datasetcmd.New}}, nil, "dataset", "match", "pumps", "id=7", "--data", "data"); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("match %v: exit code %d, want 2 and %q\n%s", names, code, want, stderr)
		}
	}
}

// TestRecordsInFiles: with --data the records come from files, and check needs no broker.
func TestRecordsInFiles(t *testing.T) {
	nowhere := "mqtt://127.0.0.1:1"
	for _, tt := range []struct {
		file, text string
		code       int
		want       string
	}{
		{"data/pumps.csv", "id,location\n7,hall 1\n", 0, "1 data set in 1 file checked: 0 findings"},
		{"data/pumps", `{"id":7,"location":"hall 1"}`, 0, "0 findings"},
		{"data/pumps.csv", "id,hall\n7,hall 1\n", 1, `no record of "pumps" has the field "location"`},
		{"data/pumps.csv", "id,location\n", 1, "each rule that needs it is skipped; add records to "},
		{"data/pumps", "id,location\n7,hall 1\n", 1, `the value of "pumps" is not a data set`},
		{"data/other.csv", "id\n7\n", 1, "add pumps.jsonl or pumps.csv to data"},
		{"other/pumps.csv", "id\n7\n", 2, "data"},
	} {
		code, stdout, stderr := runCheck(t, nowhere, map[string]string{"flow.yaml": flow, tt.file: tt.text}, "flow.yaml", "--data", "data")
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%s %q: exit code %d, want %d and %q\n%s%s", tt.file, tt.text, code, tt.code, tt.want, stdout, stderr)
		}
	}
	if code, _, stderr := runCheck(t, nowhere, map[string]string{"flow.yaml": flow}, "flow.yaml", "--data", "flow.yaml"); code != 2 || !strings.Contains(stderr, "--data flow.yaml: expected a directory") {
		t.Errorf("--data with a file: exit code %d\n%s", code, stderr)
	}
	if code, _, stderr := runCheck(t, nowhere, map[string]string{"none.yaml": "map: []\n"}, "none.yaml"); code != 0 {
		t.Errorf("a file without data sets: exit code %d\n%s", code, stderr)
	}
	if code, _, stderr := runCheck(t, nowhere, nil, "missing.yaml"); code != 2 || !strings.Contains(stderr, "missing.yaml") {
		t.Errorf("a missing file: exit code %d\n%s", code, stderr)
	}
}
