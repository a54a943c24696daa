package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Contexts{
		"":                                         {},
		"# nothing\n":                              {},
		"{}":                                       {},
		"current:\ncontexts:\n":                    {},
		"current: a\n":                             {Chosen: "a"},
		"contexts: {a: , b: ~}":                    {Named: map[string]Context{"a": {}, "b": {}}},
		"contexts:\n  1.5:\n    port: 0x10\n":      {Named: map[string]Context{"1.5": {Values: map[string]string{"port": "0x10"}}}},
		"contexts: {true: {tls: True}}":            {Named: map[string]Context{"true": {Values: map[string]string{"tls": "true"}}}},
		"contexts: {a: {protected: false}}":        {Named: map[string]Context{"a": {}}},
		"contexts: {a: {protected: true}}":         {Named: map[string]Context{"a": {Protected: true}}},
		"contexts: {a: {client-id: no}}":           {Named: map[string]Context{"a": {Values: map[string]string{"client-id": "no"}}}},
		"contexts: {a: &x {host: h}, b: *x}":       {Named: map[string]Context{"a": {Values: map[string]string{"host": "h"}}, "b": {Values: map[string]string{"host": "h"}}}},
		"contexts: {a: &x {host: h}, b: {<<: *x}}": {Named: map[string]Context{"a": {Values: map[string]string{"host": "h"}}, "b": {Values: map[string]string{"host": "h"}}}},
		"--- # one\ncontexts: {a: {host: h}}\n":    {Named: map[string]Context{"a": {Values: map[string]string{"host": "h"}}}},
	} {
		got, err := parse([]byte(text), "f")
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: -want +got\n%s", text, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"- a":                                         "f:1: expected keys with values",
		"hello":                                       "f:1: expected keys with values",
		"a: 1":                                        `f:1: "a": unknown key: expected current or contexts`,
		"current: a\ncurrent: b":                      `f:2: "current": occurs twice`,
		"current: [a]":                                "f:1: current: expected plain text",
		"contexts: [a]":                               "f:1: contexts: expected keys with values",
		"contexts: {a: x}":                            "f:1: contexts.a: expected keys with values",
		"contexts: {? [a] : x}":                       "f:1: not YAML: a key is not text",
		"contexts: {none: }":                          `f:1: contexts."none": reserved for no context: choose another name`,
		"contexts: {a b: }":                           `f:1: contexts."a b": expected letters, digits, '.', '_' and '-', beginning with a letter or a digit, at most 64`,
		"contexts:\n  a:\n  b:\n  a:\n":               `f:4: "a": occurs twice`,
		"contexts:\n  a:\n    ca_file: x":             `f:3: contexts.a."ca_file": unknown key: expected the name of a connection flag, or protected (did you mean ca-file?)`,
		"contexts:\n  a:\n    output: x":              `f:3: contexts.a."output": not a connection setting, so it cannot be in a context: expected --output`,
		"contexts: {a: {password: hunter2}}":          `f:1: contexts.a."password": no secrets here: expected password-file: FILE`,
		"contexts: {a: {key_password: hunter2}}":      `f:1: contexts.a."key_password": no secrets here: expected key-password-file: FILE`,
		"contexts: {a: {token: hunter2}}":             `f:1: contexts.a."token": no secrets here: expected sat-file: FILE`,
		"contexts:\n  b.c:\n    tls:\n    host:\n":    "f:4: contexts.b.c.host: expected one line of text",
		"contexts:\n  a:\n  b c:\n    tls:\n":         `f:3: contexts."b c": expected letters, digits, '.', '_' and '-', beginning with a letter or a digit, at most 64`,
		"contexts:\n  b.c:\n    host: h\n    host: k": `f:4: "host": occurs twice`,
		"contexts: {a: {host: [h]}}":                  "f:1: contexts.a.host: expected plain text",
		"contexts: {a: {host: }}":                     "f:1: contexts.a.host: expected one line of text",
		"contexts: {a: {host: \"\"}}":                 "f:1: contexts.a.host: expected one line of text",
		"contexts: {a: {host: \"a\\nb\"}}":            "f:1: contexts.a.host: expected one line of text",
		"contexts: {a: {host: !!binary aGk=}}":        "f:1: contexts.a.host: expected plain text",
		"contexts: {a: {host: !x h}}":                 "f:1: contexts.a.host: expected plain text",
		"contexts: {a: {tls: yes}}":                   "f:1: contexts.a.tls: must be true or false",
		"contexts: {a: {tls: \"true\"}}":              "f:1: contexts.a.tls: must be true or false",
		"contexts: {a: {protected: 1}}":               "f:1: contexts.a.protected: must be true or false",
		"current: a\n---\ncurrent: b\n":               "f:3: there is more than one document",
		"contexts:\n  a: [\n":                         "f:2: not YAML: expected a value: a bracket or brace has no counterpart",
		"contexts: {a: {host: *hunter2}}":             "f:1: not YAML: unknown anchor",
		"contexts: {a: {host: \"\\hunter2\"}}":        "f:1: not YAML: an unknown escape in double quotes: write \\\\ for a backslash",
		"contexts:\n  a:\n    host: @hunter2":         "f:3: not YAML: a tab in the indentation, or a value that must be quoted",
		"contexts: {a: {host: !hunter2}}":             "f:1: not YAML: did not find expected whitespace or line break",
		strings.Repeat("[", 1<<22):                    "f: larger than 2 MiB: expected a file of contexts",
		strings.Repeat("- ", 1<<21):                   "f: larger than 2 MiB: expected a file of contexts",
		"a: [" + strings.Repeat("1,", 1<<21):          "f: larger than 2 MiB: expected a file of contexts",
		strings.Repeat("a", 1<<22) + ": b":            "f: larger than 2 MiB: expected a file of contexts",
		strings.Repeat("[", 1<<16):                    "f:1: not YAML: exceeded max depth of 10000",
		strings.Repeat("- ", 1<<16):                   "f:1: not YAML: exceeded max depth of 10000",
		strings.Repeat("{a: ", 1<<14):                 "f:1: not YAML: exceeded max depth of 10000",
		strings.Repeat("? ", 1<<16):                   "f:1: not YAML: exceeded max depth of 10000",
		nestedMerges(24):                              "f:2: not YAML: aliases make the document too large",
		"contexts: &a {x: *a}":                        "f:1: not YAML: an alias of a value in itself",
		"contexts: {a: {<<: x}}":                      `f:1: "<<": expected a mapping, or a list of mappings`,
		"a: \xff":                                     "f:1: not YAML: expected UTF-8; iconv -f WINDOWS-1252 -t UTF-8 converts what Windows writes",
	} {
		_, err := parse([]byte(text), "f")
		if _, ok := errors.AsType[*FileError](err); !ok || err.Error() != want {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
}

// nestedMerges returns a file with merges that expand to 2^n mappings.
func nestedMerges(n int) string {
	text := "contexts:\n  m0: &m0 {host: h}\n"
	for i := range n {
		text += fmt.Sprintf("  m%d: &m%[1]d {<<: [*m%d, *m%[2]d]}\n", i+1, i)
	}
	return text
}

// TestNarrow: the selected context is read without the others, in the forms that people write.
func TestNarrow(t *testing.T) {
	const simple = "# ours\ncurrent: b # now\ncontexts:\n  # the lab\n  a:\n    host: h\n\n  b:\n    url: \"mqtt://x\"\n    client-id: >-\n      c\n      d\n  c:\n    host: k\n"
	for _, tt := range []struct {
		text, name string
		want       int // contexts that remain
	}{
		{simple, "", 1}, {simple, "a", 1}, {simple, "c", 1}, {simple, "x", 0},
		{"contexts:\n  a: {host: h}\n  b:\n    host: h\n", "b", 2},
		{"contexts:\n  a: &a\n    host: h\n  b: *a\n", "b", 2},
		{"contexts:\n  a:\n    host: \"h\n  b:\"\n  c:\n    host: h\n", "c", 2},
	} {
		c, err := parse(narrow([]byte(tt.text), tt.name), "f")
		if all, allErr := parse([]byte(tt.text), "f"); allErr == nil && (err != nil || len(c.Named) != tt.want || c.Chosen != all.Chosen ||
			!cmp.Equal(c.Named[tt.name], all.Named[tt.name], cmpopts.EquateEmpty())) {
			t.Errorf("%q, %s: %+v, %v, of %+v", tt.text, tt.name, c, err, all)
		}
	}
}

// FuzzContexts: parse reads back what render writes, and a context that was read can be resolved without a panic.
func FuzzContexts(f *testing.F) {
	f.Add(contexts)
	f.Add("current: 1.5\ncontexts: {1.5: {port: 0x10, host: 'true', client-id: \" x\"}}")
	f.Add("contexts: {a: {timeout: 2001-01-01, username: \"null\", client-id: '~', response-topic: '# x'}}")
	f.Add("contexts: {a: {password: hunter2}}")
	f.Add("contexts: {a: {<<: *x}}")
	f.Add("%YAML 1.2\n---\ncontexts:\n  ? a\n  : &x !!map\n    host: !!str 5 # h\n    client-id: |-\n      b\n    username: >\n      c\n  b: *x\n...\n")
	f.Add("contexts: {a: {host: 'it''s', client-id: \"\\u00e4\\x41\\\n  b\", username: .inf, response-topic: - x}}")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse([]byte(text), "f")
		if err != nil {
			if _, ok := errors.AsType[*FileError](err); !ok {
				t.Errorf("%v is no *FileError", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		again, err := render(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parse(again, "f")
		if err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
		for name, context := range c.Named { // each context by itself, from a text in any form
			for _, text := range []string{text, string(again)} {
				one, err := parse(narrow([]byte(text), name), "f")
				if diff := cmp.Diff(context, one.Named[name], cmpopts.EquateEmpty()); err != nil || diff != "" {
					t.Errorf("%q: context %s by itself: %v\n%s", text, name, err, diff)
				}
			}
		}
		if diff := cmp.Diff(c, back, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("written as\n%s-before +behind\n%s", again, diff)
		}
		for name, context := range c.Named {
			if err := CheckName(name); err != nil {
				t.Error(err)
			}
			_ = context.Broker()
			_ = context.check(nil)
		}
	})
}

func TestPath(t *testing.T) {
	under := func(dir string) string { return filepath.Join(dir, "sscli", "config.yaml") }
	home := "HOME"
	if runtime.GOOS == "windows" {
		home = "AppData"
	}
	abs := t.TempDir()
	in := filepath.Join(abs, ".config")
	if runtime.GOOS == "windows" {
		in = abs
	}
	for _, c := range []struct {
		args         string
		env          map[string]string
		file, source string
	}{
		{"", nil, "", ""},
		{"", map[string]string{home: abs}, under(in), ""},
		{"", map[string]string{home: abs, "XDG_CONFIG_HOME": "relative"}, under(in), ""},
		{"", map[string]string{home: abs, "XDG_CONFIG_HOME": filepath.Join(abs, "x")}, under(filepath.Join(abs, "x")), ""},
		{"", map[string]string{home: "relative"}, "", ""},
		{"", map[string]string{home: abs, "SSCLI_CONFIG": "f"}, "f", "SSCLI_CONFIG"},
		{"--config g", map[string]string{home: abs, "SSCLI_CONFIG": "f"}, "g", "--config"},
	} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		Bind(fs)
		if err := fs.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		file, source := Path(fs, func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if file != c.file || source.String() != c.source {
			t.Errorf("%s %v: %q of %q, want %q of %q", c.args, c.env, file, source, c.file, c.source)
		}
	}
}

func readContexts(file string) (Contexts, error) {
	text, err := read(file)
	if err != nil {
		return Contexts{}, err
	}
	return parse(text, file)
}

func setHost(name, host string) func(*Contexts) error {
	return func(c *Contexts) error {
		if c.Named == nil {
			c.Named = make(map[string]Context)
		}
		c.Named[name] = Context{Values: map[string]string{"host": host}}
		return nil
	}
}

// TestEditTogether: concurrent edits lose nothing, and a concurrent reader always sees a complete file.
func TestEditTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a", "config.yaml")
	const writers, each = 8, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := Edit(t.Context(), file, setHost(fmt.Sprintf("c%d-%d", w, i), "h")); err != nil {
					t.Error(err)
				}
				if _, err := readContexts(file); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	c, err := readContexts(file)
	if err != nil || len(c.Named) != writers*each {
		t.Errorf("%d contexts, %v, want %d", len(c.Named), err, writers*each)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestEditWaits: the end of the context ends the wait for the file lock.
func TestEditWaits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	err := Edit(t.Context(), file, func(*Contexts) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		return Edit(ctx, file, setHost("a", "h"))
	})
	if err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("%v, want that the time was over", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("written in spite of the error")
	}
}

func TestEditModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no mode bits")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a", "b", "config.yaml")
	if err := Edit(t.Context(), file, setHost("a", "h")); err != nil {
		t.Fatal(err)
	}
	wantMode(t, filepath.Join(dir, "a"), 0o700)
	wantMode(t, filepath.Join(dir, "a", "b"), 0o700)
	wantMode(t, file, 0o600)
	for _, mode := range []os.FileMode{0o644, 0o620, 0o602} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		err := Edit(t.Context(), file, setHost("b", "h"))
		_, readErr := readContexts(file)
		if (mode == 0o644) != (err == nil) || (err == nil) != (readErr == nil) {
			t.Errorf("mode %#o: %v, %v", mode, err, readErr)
		}
		if e, ok := errors.AsType[*FileError](err); err != nil && (!ok || e.Hint.String() != "chmod 600 "+file) {
			t.Errorf("mode %#o: %#v", mode, err)
		}
	}
}

func wantMode(t *testing.T, file string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %#o, want %#o", file, got, want)
	}
}

// TestEditLinks: a symbolic link stays a link, even if its target does not exist yet.
func TestEditLinks(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "dotfiles", "sscli.yaml")
	inner, outer := filepath.Join(dir, "inner"), filepath.Join(dir, "outer.yaml")
	for link, to := range map[string]string{inner: filepath.Join("dotfiles", "sscli.yaml"), outer: inner} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
		if _, err := os.Lstat(link); err != nil {
			t.Skip("this system has no symbolic links: it says that it made one, but", err)
		}
	}
	for i := range 2 {
		if err := Edit(t.Context(), outer, setHost(fmt.Sprint("a", i), "h")); err != nil {
			t.Fatal(err)
		}
		for _, link := range []string{inner, outer} {
			if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Fatalf("%s is no link: %v", link, err)
			}
		}
	}
	if c, err := readContexts(target); err != nil || len(c.Named) != 2 {
		t.Errorf("%v, %v, want two contexts", c, err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if err := Edit(t.Context(), loop, setHost("a", "h")); err == nil {
		t.Error("a link to itself was followed")
	}
}

// TestEditFollowsAsReading: Edit writes the file that Load reads, also if a relative link is in a linked directory.
func TestEditFollowsAsReading(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "dotfiles", "sscli"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"config": filepath.Join("dotfiles", "sscli"), filepath.Join("dotfiles", "sscli", "config.yaml"): filepath.Join("..", "contexts.yaml")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, link)); err != nil {
			t.Skip("this system has no symbolic links: it says that it made one, but", err)
		}
	}
	for i := range 2 {
		file := filepath.Join(dir, "config", "config.yaml")
		if err := Edit(t.Context(), file, setHost(fmt.Sprint("a", i), "h")); err != nil {
			t.Fatal(err)
		}
		if c, err := readContexts(file); err != nil || len(c.Named) != i+1 {
			t.Errorf("%v, %v, want %d contexts", c, err, i+1)
		}
	}
}
