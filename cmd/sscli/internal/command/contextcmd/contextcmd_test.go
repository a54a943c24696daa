package contextcmd_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/basics"
	"github.com/sscli/sscli/cmd/sscli/internal/command/contextcmd"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

// A desk is a user's environment with a context file.
type desk struct {
	t    *testing.T
	file string
	env  map[string]string
}

func newDesk(t *testing.T) *desk {
	file := filepath.Join(t.TempDir(), "sscli", "config.yaml")
	return &desk{t, file, map[string]string{"SSCLI_CONFIG": file}}
}

// runs runs a command line and checks its exit code, its output, and that standard error contains a text. In want, FILE
// stands for the context file.
func (d *desk) runs(line string, code int, want, stderr string) {
	d.t.Helper()
	commands := []app.Command{{Name: "context", New: contextcmd.New}, {Name: "get", New: verb.Command(basics.Get)}}
	gotCode, stdout, gotStderr := apptest.Run(d.t, commands, d.env, strings.Fields(line)...)
	diff := cmp.Diff(want, strings.NewReplacer(d.file, "FILE", format.Escape(d.file), "FILE").Replace(stdout))
	if gotCode != code || diff != "" || !strings.Contains(gotStderr, stderr) || stderr == "" && gotStderr != "" {
		d.t.Errorf("%s: exit code %d, want %d and %q\n%s(-want +got):\n%s", line, gotCode, code, stderr, gotStderr, diff)
	}
}

// contents returns the text of the context file; "" = the file does not exist.
func (d *desk) contents() string {
	d.t.Helper()
	text, err := os.ReadFile(d.file)
	if err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	return string(text)
}

// TestContexts creates, changes, chooses, lists and removes a context.
func TestContexts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.runs("context list", 0, "", "")
	d.runs("context set lab -u mqtt://lab.example", 0, "lab\t-\t-\tmqtt://lab.example:1883\n", "")
	d.runs("context set prod -H prod.example --protected", 0, "prod\t-\tprotected\tmqtts://prod.example:8883\n", "")
	d.runs("context use lab", 0, "lab\tchosen\t-\tmqtt://lab.example:1883\n", "")
	d.runs("context set lab -H lab2.example", 0, "lab\tchosen\t-\tmqtts://lab2.example:8883\n", "") // replaces --url
	d.runs("context set prod --unset protected -t 3s", 0, "prod\t-\t-\tmqtts://prod.example:8883\n", "")
	d.runs("context set here --embedded", 0, "here\t-\t-\tembedded\n", "")
	d.runs("context list -o human", 0, "  here  embedded\n* lab   mqtts://lab2.example:8883\n  prod  mqtts://prod.example:8883\n", "")
	d.runs("context rm lab", 0, "lab\tchosen\t-\tmqtts://lab2.example:8883\n", "")
	d.runs("context set lab -H lab3.example", 0, "lab\t-\t-\tmqtts://lab3.example:8883\n", "") // no longer chosen
	d.runs("context rm lab", 0, "lab\t-\t-\tmqtts://lab3.example:8883\n", "")
	d.runs("context list", 0, "here\t-\t-\tembedded\nprod\t-\t-\tmqtts://prod.example:8883\n", "")
	d.runs("context use prod", 0, "prod\tchosen\t-\tmqtts://prod.example:8883\n", "")
	d.runs("context use none", 0, "-\t-\t-\t-\n", "")
	if text := d.contents(); strings.Contains(text, "lab") || !strings.Contains(text, "prod.example") {
		t.Errorf("the context file:\n%s", text)
	}
}

// TestUse: a command connects to the broker of the chosen context, or of the context in -c.
func TestUse(t *testing.T) {
	t.Parallel()
	one, two := emulator.Start(t), emulator.Start(t)
	apptest.Put(t, one, "a", "1")
	apptest.Put(t, two, "a", "2")
	d := newDesk(t)
	for name, store := range map[string]*emulator.Server{"one": one, "two": two} {
		d.runs("context set "+name+" -q -o template={{.name}} -u "+store.URL(), 0, name+"\n", "")
	}
	d.runs("get a", 2, "", "try: sscli context use one, or -c one with this command")
	d.runs("context use two -o template={{.chosen}}", 0, "true\n", "")
	d.runs("get a", 0, "2", "")
	d.runs("get a -c one", 0, "1", "")
}

// TestMistakes: an invalid command leaves the context file unchanged.
func TestMistakes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.runs("context set lab -t 5s", 2, "", "context lab: no broker\n  try: sscli context set lab --url mqtts://HOST:PORT")
	if text := d.contents(); text != "" {
		t.Errorf("a context without a broker was kept:\n%s", text)
	}
	d.runs("context set lab -u mqtt://lab.example", 0, "lab\t-\t-\tmqtt://lab.example:1883\n", "")
	before := d.contents()
	for line, want := range map[string]string{
		"context set lab":              "nothing to set: expected connection flags, --protected or --unset FLAG",
		"context set lab --unset nope": "nope",
		"context set lab --unset url":  "context lab: no broker",
		"context set lab -c lab -H h":  "--context lab: set, use and rm take the name as the operand, and list takes none",
		"context list -c lab":          "--context lab: set, use and rm take the name as the operand, and list takes none",
		"context set none -u mqtt://h": "none",
		"context set a/b -u mqtt://h":  "a/b",
		"context set":                  "missing NAME",
		"context use lap":              `context use: unknown context "lap" (did you mean lab?)`,
		"context rm prod":              "context rm: unknown context \"prod\"\n  try: sscli context list",
		"context show prod":            `unknown context "prod"`,
		"context show lab prod":        `"prod": sscli context show takes only one NAME`,
		"context show lab -c lab":      "--context lab together with lab: use only one of them",
		"context list lab":             `"lab": sscli context list takes no operand`,
		"context make lab":             `unknown context command "make": expected `,
	} {
		d.runs(line, 2, "", want)
	}
	if diff := cmp.Diff(before, d.contents()); diff != "" {
		t.Errorf("the context file (-want +got):\n%s", diff)
	}
	d.env = nil
	d.runs("context list", 2, "", "no file for contexts: set HOME or XDG_CONFIG_HOME, or use --config FILE")
}

// TestShow: show prints the settings that a command with the same flags and variables would use, and the source of each
// setting.
func TestShow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.runs("context set lab -u mqtt://ann@lab.example -t 5s", 0, "lab\t-\t-\tmqtt://lab.example:1883\n", "")
	d.runs("context use lab", 0, "lab\tchosen\t-\tmqtt://lab.example:1883\n", "")
	const (
		file     = "config\tFILE\tSSCLI_CONFIG\t-\n"
		lab      = "url\tmqtt://lab.example:1883\tcontext lab\tFILE\nusername\tann\tcontext lab\tFILE\n"
		clientID = "client-id\tsscli- and random characters\tdefault\t-\n"
		output   = "output\traw\tdefault\t-\ncolor\tauto\tdefault\t-\n"
	)
	timeout := func(value, source string) string { return "timeout\t" + value + "\t" + source + "\t-\n" }
	for _, tt := range []struct {
		name, args string
		env        map[string]string
		code       int
		want, err  string
	}{
		{"chosen", "", nil, 0, file + "context\tlab\tchosen\t-\n" + lab + "timeout\t5s\tcontext lab\tFILE\n" + clientID + output, ""},
		{"named", "lab -t 1s", nil, 0, file + "context\tlab\t--context\t-\n" + lab + timeout("1s", "--timeout") + clientID + output, ""},
		{"variable", "", map[string]string{"SSCLI_TIMEOUT": "2s"}, 0, file + "context\tlab\tchosen\t-\n" + lab + timeout("2s", "SSCLI_TIMEOUT") + clientID + output, ""},
		{"named before a variable", "lab", map[string]string{"SSCLI_TIMEOUT": "2s"}, 0, file + "context\tlab\t--context\t-\n" + lab + "timeout\t5s\tcontext lab\tFILE\n" + clientID + output, ""},
		{"another broker", "-u mqtt://h", nil, 0, file + "url\tmqtt://h:1883\t--url\t-\n" + clientID + timeout("10s", "default") + output, ""},
		{"invalid", "-u mqtt://h", map[string]string{"SSCLI_TIMEOUT": "5"}, 2, file + "url\tmqtt://h:1883\t--url\t-\n" + clientID + timeout("10s", "default") + output, "SSCLI_TIMEOUT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			own := &desk{t, d.file, maps.Clone(d.env)}
			maps.Copy(own.env, tt.env)
			own.runs("context show "+tt.args, tt.code, tt.want, tt.err)
		})
	}
	overridden := &desk{t, d.file, maps.Clone(d.env)}
	overridden.env["SSCLI_URL"] = "mqtt://other.example"
	overridden.runs("context use lab -o template={{.name}}", 0, "lab\n", "warning: SSCLI_URL is set and overrides it\n  try: unset SSCLI_URL")
}
