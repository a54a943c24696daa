package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/command/self"
	"github.com/sscli/sscli/internal/testkit/full"
)

func manualPages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := self.WritePages(cmdline.NewRoot(newApp()), dir, self.Edition{Date: "2026-09-21"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestManual passes the pages to the programs that people read them with. The programs must not report a problem.
func TestManual(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	t.Parallel()
	dir := manualPages(t)
	pages, err := filepath.Glob(filepath.Join(dir, "sscli*.[17]"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	t.Run("mandoc", func(t *testing.T) {
		full.Program(t, "mandoc")
		out, err := exec.Command("mandoc", append([]string{"-T", "lint", "-W", "style"}, pages...)...).CombinedOutput()
		var bad []string
		for line := range strings.Lines(string(out)) {
			// The length of an example line is not a problem.
			if !strings.Contains(line, "STYLE: input text line longer than 80 bytes") {
				bad = append(bad, line)
			}
		}
		if len(bad) > 0 || err != nil && len(out) == 0 {
			t.Errorf("mandoc -T lint: %v\n%s", err, strings.Join(bad, ""))
		}
	})
	t.Run("man", func(t *testing.T) {
		full.Program(t, "man")
		for _, page := range pages {
			cmd := exec.Command("man", "--warnings", "-E", "UTF-8", "-l", page)
			cmd.Env = append(os.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8", "MANPAGER=cat", "MAN_KEEP_FORMATTING=")
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil || stderr.Len() > 0 {
				t.Errorf("man -l %s: %v\n%s", filepath.Base(page), err, &stderr)
			}
			if !strings.Contains(stdout.String(), "NAME\n") {
				t.Errorf("man -l %s shows\n%s", filepath.Base(page), &stdout)
			}
		}
	})
}

// TestManualSays looks for the information that a reader needs.
func TestManualSays(t *testing.T) {
	t.Parallel()
	dir := manualPages(t)
	for name, want := range map[string][]string{
		"sscli.1": {
			`.TH "SSCLI" "1" 2026-09-21 "sscli`, "\\fBsscli\\-set\\fR(1)\nStore a value\n",
			`\fB\-o\fR, \fB\-\-output\fR \fIFORM\fR`, "\\fBsscli\\-output\\fR(7)\n",
		},
		"sscli-set.1":        {"sscli\\-set \\- Store a value\n", "\\fBsscli set\\fR KEY VALUE [NX|NEX] [PX MS] [flags]\n", "Also: put.\n"},
		"sscli-exit-codes.7": {".TP\n\\fB124\\fR\ntimed out with nothing applied\n", "quota, \\[u2026]\n"},
		"sscli-output.7":     {".TP\n\\fBtemplate=TEXT\\fR\n"},
		"sscli-hlc-parse.1":  {"\\fBsscli\\-hlc\\fR(1)"},
		"sscli-environment.7": {
			".TP\n\\fB\\-\\-host\\fR\nSSCLI_HOST, AIO_BROKER_HOSTNAME\n",
		},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		for _, w := range want {
			if !strings.Contains(string(page), w) {
				t.Errorf("%s does not say %q:\n%s", name, w, page)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "sscli-keynotify.1")); !os.IsNotExist(err) {
		t.Errorf("a hidden command has a page: %v", err)
	}
}

// TestReleaseManual checks that the Homebrew cask in .goreleaser.yaml names each page of the manual; -update adds them.
func TestReleaseManual(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../.goreleaser.yaml", "    manpages:\n", "    hooks:\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, more := strings.Cut(rest, end)
	if !ok || !more {
		t.Fatalf("%s has no lines between %q and %q", file, begin, end)
	}
	var want strings.Builder
	err = fs.WalkDir(os.DirFS(manualPages(t)), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			fmt.Fprintf(&want, "      - man/%s\n", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want.String()+end+after), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("%s: other pages than sscli man writes; go test ./cmd/sscli -run TestReleaseManual -update (-want +got)\n%s", file, diff)
	}
}
