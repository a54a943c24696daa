package policycmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/command/policycmd"
)

// TestExamples asks each question in the examples of `policy can`. The emulator's TestPolicyExamples asks a server the
// same questions.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../../../../internal/policy/testdata/examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	asked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) < 3 || words[0] != "#" || words[1] != "allow" && words[1] != "deny" {
				continue
			}
			asked++
			commands := []app.Command{{Name: "policy", New: policycmd.New}}
			code, stdout, stderr := apptest.Run(t, commands, nil, append([]string{"policy", "can", file}, words[2:]...)...)
			if want := map[string]int{"allow": 0, "deny": 1}[words[1]]; code != want || stderr != "" {
				t.Errorf("%s: %s: code %d, %s%s", filepath.Base(file), strings.TrimSpace(line), code, stdout, stderr)
			}
		}
	}
	if asked < 50 {
		t.Errorf("only %d questions", asked)
	}
}

// TestEncodings: a policy may begin with a byte order mark, and be UTF-16, as a redirection of PowerShell writes it.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const text = `[{"principals": {"usernames": ["\ud83d\ude00"]}, "brokerResources": [{"method": "Connect"}]}]`
	wide := []byte("\xff\xfe")
	for _, c := range []byte(text) {
		wide = append(wide, c, 0)
	}
	for name, content := range map[string][]byte{"UTF-8": []byte("\ufeff" + text), "UTF-16": wide} {
		file := filepath.Join(t.TempDir(), "authz.json")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		commands := []app.Command{{Name: "policy", New: policycmd.New}}
		if code, stdout, stderr := apptest.Run(t, commands, nil, "policy", "can", file, "--user", "😀", "--connect"); code != 0 {
			t.Errorf("%s: code %d, %s%s", name, code, stdout, stderr)
		}
	}
}

// TestQuestionEncodings: so may the questions of `policy can FILE -`, and what `policy suggest` reads.
func TestQuestionEncodings(t *testing.T) {
	t.Parallel()
	policyFile := filepath.Join(t.TempDir(), "authz.json")
	if err := os.WriteFile(policyFile, []byte(`[{"principals": {"usernames": ["ann"]}, "brokerResources": [{"method": "Connect"}]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = "--user ann --connect\r\n"
	wide := []byte("\xff\xfe")
	for _, c := range []byte(text) {
		wide = append(wide, c, 0)
	}
	for name, content := range map[string]string{"UTF-8": "\ufeff" + text, "UTF-16": string(wide), "half a character": "\xff\xfe-"} {
		want := 0
		if name == "half a character" {
			want = 2
		}
		stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
		if err != nil {
			t.Fatal(err)
		}
		defer stdout.Close()
		commands := []app.Command{{Name: "policy", New: policycmd.New}}
		a := apptest.NewApp(commands, nil, stdout, stdout)
		a.Stdin = strings.NewReader(content)
		if code := a.Report(cmdline.Run(t.Context(), a, []string{"policy", "can", policyFile, "-"})); code != want {
			printed, _ := os.ReadFile(stdout.Name())
			t.Errorf("can, %s: code %d, want %d, %s", name, code, want, printed)
		}
		list := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(list, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr := apptest.Run(t, commands, nil, "policy", "suggest", list); code != want || want == 0 && !strings.Contains(stdout, "ann") {
			t.Errorf("suggest, %s: code %d, want %d, %s%s", name, code, want, stdout, stderr)
		}
	}
}
