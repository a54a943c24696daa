package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// marks are words that a license's text has and the others' texts lack.
var marks = map[string]string{
	"MIT":          "Permission is hereby granted, free of charge",
	"Apache-2.0":   "Apache License",
	"BSD-2-Clause": "Redistributions in binary form must reproduce the above copyright",
	"BSD-3-Clause": "Neither the name",
	"EPL-2.0":      "Eclipse Public License - v 2.0",
}

// TestLicenses: each module linked into the program on any system has a license in the table, its
// files have that license's text and no other's, and the table has no other module.
func TestLicenses(t *testing.T) {
	linked := map[string]string{own: "../..", "std": goroot(t)}
	for _, system := range []string{"linux", "darwin", "windows"} {
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "../../cmd/sscli")
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if path, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				linked[path] = dir
			}
		}
	}
	for path, dir := range linked {
		want, ok := licenses[path]
		if !ok {
			t.Errorf("%s is linked and has no license in the table", path)
			continue
		}
		text := texts(t, dir)
		for id, mark := range marks {
			has := strings.Contains(text, mark)
			if id == "BSD-2-Clause" {
				has = has && !strings.Contains(text, marks["BSD-3-Clause"])
			}
			if named := strings.Contains(want, id); has != named {
				t.Errorf("%s: license %q, but the text of %s in its files: %v", path, want, id, has)
			}
		}
	}
	for path := range licenses {
		if linked[path] == "" {
			t.Errorf("%s has a license in the table and is not linked", path)
		}
	}
}

func goroot(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// texts returns the license files of a module, with single spaces between words.
func texts(t *testing.T, dir string) string {
	var all []string
	for _, pattern := range []string{"LICEN[CS]E*", "e[dp]l-v*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, strings.Fields(string(text))...)
		}
	}
	return strings.Join(all, " ")
}

// TestExpression: the packages and the image name every license of what is linked.
func TestExpression(t *testing.T) {
	const want = "(EPL-2.0 OR BSD-3-Clause) AND Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND MIT"
	if got := expression(); got != want {
		t.Errorf("expression() = %s, want %s", got, want)
	}
	config, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ *(?:license|org\.opencontainers\.image\.licenses): (.*)$`).FindAllSubmatch(config, -1)
	if len(lines) != 3 {
		t.Errorf("%d licenses in .goreleaser.yaml, want those of the packages, of Scoop and of the image", len(lines))
	}
	for _, line := range lines {
		if string(line[1]) != want {
			t.Errorf(".goreleaser.yaml: license %s, want %s", line[1], want)
		}
	}
}

func TestUnknownLicense(t *testing.T) {
	var c component
	if err := c.licensed("example.org/x"); err == nil || !strings.Contains(err.Error(), "example.org/x") {
		t.Errorf("a module without a license: %v, want an error that names it", err)
	}
}
