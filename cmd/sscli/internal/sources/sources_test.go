package sources

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/testkit/systext"
)

// tree writes files below a new directory, and makes it the working directory.
func tree(t *testing.T, contents map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range contents {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns the entries of sources, followed by the error if there is one.
func read(ctx context.Context, prefix string, names ...string) (got []string) {
	set, err := Open(ctx, names, Options{Prefix: prefix, Stdin: func(context.Context) (string, error) {
		return `{"key":"in","value":"put"}`, nil
	}})
	if err != nil {
		return []string{err.Error()}
	}
	for e, err := range set.Entries(ctx) {
		if err != nil {
			return append(got, err.Error())
		}
		value, err := e.Load(nil)
		if err != nil {
			return append(got, err.Error())
		}
		text := fmt.Sprintf("%s=%q", e.Key, value)
		if !e.Found {
			text = e.Key + " missing"
		}
		if e.Options.Persist {
			text += " persist"
		}
		if e.Options.TTL > 0 {
			text += " " + e.Options.TTL.String()
		}
		if !set.Has(e.Key) {
			text += " (not known)"
		}
		got = append(got, text)
	}
	if set.Len() != len(got) {
		got = append(got, fmt.Sprintf("Len %d", set.Len()))
	}
	return got
}

func TestSources(t *testing.T) {
	tree(t, map[string]string{
		"export.jsonl":      "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\"a\",\"value\":\"3\"}\n{\"key\":\"c\",\"found\":false}\n",
		"statestore.json":   `[{"factoryId":"factoryA"}]`,
		"dir/config/mode":   "auto\n",
		"dir/sites.csv":     "id,floor\nA,7\n",
		"dir/tags.jsonl":    "{\"tag\": 1.0}\n",
		"dir/plain.json":    "[1]",
		"dir/.hidden":       "no",
		"dir/.git/config":   "no",
		"site.yaml":         "# our site\nkeys:\n  - key: b\n    value: 21.50\n    persist: true\n  - { key: logo, file: files/logo, ttl: 90s }\n  - key: sites\n    dataset: dir/sites.csv\n  - key: text\n    value: |\n      {\"a\": 1}\n",
		"files/logo":        "\x89PNG",
		"twice/a.csv":       "id\n1\n",
		"twice/a.jsonl":     "{}\n",
		"wrong/a.csv":       "id\n1,2\n",
		"broken.jsonl":      "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"a\"}\n",
		"gone.yml":          "keys: [{key: a, file: no-such-file}]",
		"empty/.keep":       "",
		"nameless.yaml":     "keys:\n- key: ''\n  value: 1\n",
		"records/set.jsonl": "{\"a\":1}\n",
		"old/mac.csv":       "id,floor\rA,7\r",
		"bare/a.csv":        "id,floor\n",
		"zero/a.csv":        "",
		"blank/a.jsonl":     "\n",
		"repeat/a.jsonl":    "{\"a\":1}\n{\"a\":1,\"a\":2}\n",
		"typed.yaml":        "keys:\n- {key: a, dataset: dir/tags.jsonl, separator: ';'}\n",
		"semicolons.csv":    "id;floor\nA;7\n;\n",
		"sites.yaml":        "keys:\n- {key: a, dataset: semicolons.csv, separator: ';'}\n",
		"list.yaml":         "keys:\n- {key: a, dataset: bare/a.csv}\n",
	})
	for _, tt := range []struct {
		prefix string
		names  string
		want   []string
	}{
		{"", "export.jsonl", []string{`b="2"`, `a="3"`, `c missing`}},
		{"", "statestore.json", []string{`factoryId="factoryA"`}},
		{"", "-", []string{`in="put"`}},
		{"x/", "dir", []string{`x/config/mode="auto\n"`, `x/plain.json="[1]"`, `x/sites="{\"id\":\"A\",\"floor\":7}\n"`, `x/tags="{\"tag\":1.0}\n"`}},
		{"x/", "dir/sites.csv", []string{`x/sites="{\"id\":\"A\",\"floor\":7}\n"`}},
		{"x/", "site.yaml", []string{`b="21.50" persist`, `logo="\x89PNG" 1m30s`, `sites="{\"id\":\"A\",\"floor\":7}\n"`, `text="{\"a\": 1}\n"`}},
		{"", "site.yaml export.jsonl", []string{`logo="\x89PNG" 1m30s`, `sites="{\"id\":\"A\",\"floor\":7}\n"`, `text="{\"a\": 1}\n"`, `b="2"`, `a="3"`, `c missing`}},
		{"", "empty", nil},
		{"", "old", []string{`mac="{\"id\":\"A\",\"floor\":7}\n"`}},
		{"", "bare", []string{format.Path(filepath.FromSlash("bare/a.csv")) + " has no records: expected at least one, with a field"}},
		{"", "zero/a.csv", []string{"zero/a.csv has no records: expected at least one, with a field"}},
		{"", "blank", []string{format.Path(filepath.FromSlash("blank/a.jsonl")) + " has no records: expected at least one, with a field"}},
		{"", "repeat", []string{`repeat/a.jsonl:2:1: the record has the field "a" twice`}},
		{"", "typed.yaml", []string{"dir/tags.jsonl:1:1: the records are JSON, and a separator is only for CSV"}},
		{"", "semicolons.csv", []string{"semicolons.csv:1:1: one column \"id;floor\": expected cells between commas"}},
		{"", "sites.yaml", []string{`a="{\"id\":\"A\",\"floor\":7}\n"`}},
		{"", "list.yaml", []string{"bare/a.csv has no records: expected at least one, with a field"}},

		{"", "no-such-file", []string{"open no-such-file: no such file or directory"}},
		{"", "twice", []string{format.Path(filepath.FromSlash("twice/a.csv")) + " and " + format.Path(filepath.FromSlash("twice/a.jsonl")) + ": both are the key a"}},
		{"", "wrong", []string{"wrong/a.csv:2:1: "}},
		{"", "export.jsonl broken.jsonl", []string{"broken.jsonl: line 2: no value: expected value, or value_b64"}},
		{"", "gone.yml", []string{"open no-such-file: no such file or directory"}},
		{"", "nameless.yaml", []string{"nameless.yaml:2: the key is empty"}},
		{"", "records/set.jsonl", []string{"records/set.jsonl: line 1: no key: expected key, or key_b64"}},
	} {
		got := read(t.Context(), tt.prefix, strings.Fields(tt.names)...)
		if len(got) == 1 {
			got[0] = systext.Unix(got[0]) // it may be an error with a path
		}
		if len(got) == 1 && len(tt.want) == 1 && strings.HasPrefix(filepath.ToSlash(got[0]), tt.want[0]) {
			continue // got begins with the error
		}
		if diff := gocmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.names, diff)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if got := read(canceled, "", "dir"); len(got) != 1 || got[0] != context.Canceled.Error() {
		t.Errorf("after the end of the context: %q", got)
	}
}

// TestLoad loads values with right and wrong guesses of the value, from an unchanged file and from one that has
// changed.
func TestLoad(t *testing.T) {
	const text = "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"\"}\n{\"key\":\"c\",\"found\":false}\n"
	for _, tt := range []struct{ name, text, want string }{
		{"unchanged", text, ""},
		{"another value", strings.Replace(text, "1", "2", 1), "keys.jsonl: line 1: changed while it was read"},
		{"another key", strings.Replace(text, `"a"`, `"x"`, 1), "keys.jsonl: line 1: changed while it was read"},
		{"no JSON", strings.Replace(text, "}", "", 1), "keys.jsonl: line 1: byte 23: JSON: unexpected EOF"},
		{"one line more", text + "{}\n", "keys.jsonl: changed while it was read"},
		{"one line less", text[:strings.Index(text, "\n")+1], "keys.jsonl: changed while it was read"},
	} {
		tree(t, map[string]string{"keys.jsonl": text})
		set, err := Open(t.Context(), []string{"keys.jsonl"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("keys.jsonl", []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"a": "1", "b": "", "c": ""}
		err = nil
		for e, entryErr := range set.Entries(t.Context()) {
			if entryErr != nil {
				err = cmp.Or(err, entryErr)
				break
			}
			for _, guess := range []string{"1", "2", ""} {
				value, loadErr := e.Load([]byte(guess))
				if err = cmp.Or(err, loadErr); err == nil && string(value) != want[e.Key] {
					t.Errorf("%s: %s with guess %q: %q, want %q", tt.name, e.Key, guess, value, want[e.Key])
				}
			}
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want || err != nil && !fault.IsA[*fault.UsageError](err) {
			t.Errorf("%s: %T %q, want %q", tt.name, err, got, tt.want)
		}
	}
}

// TestFilesChange: a file that is not as the first pass found it is an error, unless its value need not be read again.
func TestFilesChange(t *testing.T) {
	write := func(name, text string) func() error {
		return func() error { return os.WriteFile(name, []byte(text), 0o600) }
	}
	dir := filepath.FromSlash("dir/")
	for _, tt := range []struct {
		name   string
		change func() error
		want   string
	}{
		{"unchanged", func() error { return nil }, ""},
		{"emptied", write("dir/plain", ""), dir + "plain: changed while it was read"},
		{"written", write("dir/plain", "2"), dir + "plain: changed while it was read"},
		{"a record less", write("dir/set.csv", "id\nA\n"), dir + "set.csv: changed while it was read"},
		{"without records", write("dir/set.csv", "id\n"), dir + "set.csv has no records: expected at least one, with a field"},
		{"the same records", write("dir/set.csv", "\"id\"\r\nA\r\nB\r\n"), ""},
		{"gone", func() error { return os.Remove("dir/plain") }, "open dir/plain: no such file or directory"},
		{"of a manifest", write("dir/logo", "x"), dir + "logo: changed while it was read"},
	} {
		tree(t, map[string]string{"dir/plain": "1", "dir/set.csv": "id\nA\nB\n", "site.yaml": "keys: [{key: m, value: 1}, {key: logo, file: dir/logo}]", "dir/logo": "L"})
		want := map[string]string{"logo": "L", "plain": "1", "set": "{\"id\":\"A\"}\n{\"id\":\"B\"}\n", "m": "1"}
		set, err := Open(t.Context(), []string{"dir", "site.yaml"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		got := ""
		for e, err := range set.Entries(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if value, err := e.Load([]byte(want[e.Key])); err != nil || string(value) != want[e.Key] {
				t.Errorf("%s: %s with the right guess: %q, %v", tt.name, e.Key, value, err)
			}
			switch value, err := e.Load(nil); {
			case err != nil && !fault.IsA[*fault.UsageError](err):
				t.Errorf("%s: %s: %T %v", tt.name, e.Key, err, err)
			case err != nil:
				got += systext.Unix(err.Error())
			case string(value) != want[e.Key]:
				t.Errorf("%s: %s: %q, want %q", tt.name, e.Key, value, want[e.Key])
			}
		}
		if filepath.ToSlash(got) != filepath.ToSlash(tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestFilesTooLarge: a file that is larger than a value can be is an error of the first pass.
func TestFilesTooLarge(t *testing.T) {
	for _, name := range []string{"plain", "set.csv", "set.jsonl"} {
		tree(t, map[string]string{"dir/" + name: ""})
		if err := os.Truncate(filepath.Join("dir", name), files.MaxValue+1); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), []string{"dir"}, Options{})
		if !fault.IsA[*fault.UsageError](err) || !fault.IsA[*files.SizeError](err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLinks reads a directory like a ConfigMap mounted by Kubernetes, and one with a symbolic link loop.
func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	tree(t, map[string]string{"volume/..2026/mode": "auto", "volume/..2026/sub/x": "1", "b": ""})
	for link, to := range map[string]string{"volume/..data": "..2026", "volume/mode": "..data/mode", "volume/sub": "..data/sub"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff([]string{`mode="auto"`, `sub/x="1"`}, read(t.Context(), "", "volume")); diff != "" {
		t.Errorf("ConfigMap (-want +got):\n%s", diff)
	}
	tree(t, map[string]string{"out/secret": "s", "out/dir/x": "1", "in/a": "1", "in/site.yaml": "keys: [{key: k, file: ../out/secret}]", "in/link.yaml": "keys: [{key: k, file: escape}]"})
	for _, tt := range []struct{ link, to, source, want string }{
		{"in/escape", "../out/secret", "in", "secret"},
		{"in/escape", "../out/dir", "in", "dir"},
		{"in/escape", "../out/secret", "in/link.yaml", "link"},
		{"in/unused", "a", "in/site.yaml", "manifest"},
	} {
		if err := os.Symlink(tt.to, tt.link); err != nil {
			t.Fatal(err)
		}
		names := []string{tt.source}
		if _, err := Open(t.Context(), names, Options{}); err == nil || !strings.Contains(err.Error(), ": outside of in, or an absolute link") {
			t.Errorf("%s: %v", tt.want, err)
		}
		if _, err := Open(t.Context(), names, Options{Follow: true}); err != nil {
			t.Errorf("%s: followed: %v", tt.want, err)
		}
		if err := os.Remove(tt.link); err != nil {
			t.Fatal(err)
		}
	}
	tree(t, map[string]string{"loop/a": ""})
	if err := os.Symlink(".", "loop/b"); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]string{"loop/b: the link leads to a directory above it"}, read(t.Context(), "", "loop")); diff != "" {
		t.Errorf("loop (-want +got):\n%s", diff)
	}
}

// TestManifestErrors checks that each error names the line of the mistake.
func TestManifestErrors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ": empty: expected the word keys: and below it a list, such as - {key: a, value: 1}"},
		{"# nothing\n", ": empty: expected the word keys: and below it a list, such as - {key: a, value: 1}"},
		{"- a\n", ":1: a bare list: expected the word keys: and below it a list, such as - {key: a, value: 1}"},
		{"keys: a\n", ":1: keys: expected a list"},
		{"keys:\n", ":1: keys: expected a list"},
		{"key: a\nvalue: 1\n", `:1: unknown field "key": expected keys`},
		{"keys:\n- a\n", ":2: expected a key with its value, such as key: a and value: 1"},
		{"keys:\n- value: 1\n", ":2: no key"},
		{"keys:\n- key: a\n", ":2: a: expected value, file or dataset"},
		{"keys:\n- key: a\n  value: 1\n  file: b\n", ":2: a: value and file: use only one of them"},
		{"keys:\n- key: a\n  value:\n", `:3: value: expected text; write "" for an empty value, and JSON in quotes or after a |`},
		{"keys:\n- key: a\n  value: {b: 1}\n", `:3: value: expected text; write "" for an empty value, and JSON in quotes or after a |`},
		{"keys:\n- key: [a]\n  value: 1\n", ":2: key: expected text"},
		{"keys:\n- key: a\n  file: ''\n", ":3: file: expected the name of a file"},
		{"keys:\n- key: a\n  value: 1\n  persist: 1\n", ":4: persist: must be true or false"},
		{"keys:\n- key: a\n  value: 1\n  ttl: 10\n", `:4: ttl: "10" has no unit`},
		{"keys:\n- key: a\n  value: 1\n  ttl: 1us\n", ":4: ttl: 1us: expected whole milliseconds, at least 1ms"},
		{"keys:\n- key: a\n  value: 1\n  separator: ;\n", ":2: a: separator without dataset"},
		{"keys:\n- key: a\n  dataset: b\n  separator: ''\n", `:4: separator: "": expected one character, or tab`},
		{"keys:\n- key: a\n  vlaue: 1\n", `:3: unknown field "vlaue": expected key, value, file, dataset, separator, persist or ttl`},
		{"keys:\n- key: a\n  value: 1\n- key: a\n  value: 2\n", ":4: the key a is in line 2 already"},
		{"keys:\n- key: a\n  value: 1\n  value: 2\n", `:4: the key "value" occurs twice`},
		{"keys: []\n---\nkeys: []\n", ":3: a second document: expected one"},
		{"keys: [\xff]\n", ":1: not YAML: expected UTF-8"},
		{"keys: [\n", ":1: not YAML: "},
		{strings.Repeat("[", 20000), ":1: not YAML: exceeded max depth of 10000"},
		{"keys:\n- key: a\n  value: a\u0085b\n", `:3: not YAML: the character U+0085: write it in double quotes, as \u0085`},
		{"keys:\n- key: a\n  value: !!binary aGk=\n", ":3: value: expected text"},
		{strings.Repeat("#", 2<<20), ": larger than 1 MiB: put large values into files"},
	} {
		if _, err := parseManifest(t.Context(), []byte(tt.in)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%.60q:\n got %v\nwant %s", tt.in, err, tt.want)
		}
	}
}

// TestManifestFiles: a file that cannot be read is an error of the first pass.
func TestManifestFiles(t *testing.T) {
	for _, kind := range []string{"file", "dataset"} {
		tree(t, map[string]string{
			"sub/x": "", "keys.yaml": "keys:\n- key: first\n  value: 1\n- key: second\n  " + kind + ": sub\n",
			"proc.yaml": "keys:\n- key: first\n  value: 1\n- key: second\n  " + kind + ": /proc/self/mem\n",
		})
		if _, err := Open(t.Context(), []string{"keys.yaml"}, Options{}); err == nil || err.Error() != "sub: expected a regular file" {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := Open(t.Context(), []string{"proc.yaml"}, Options{Follow: true}); !fault.IsA[*fault.UsageError](err) && runtime.GOOS == "linux" { // it can be opened, but its first page cannot be read
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestScalars reads values of each YAML style like PyYAML's BaseLoader, which wrote the file of cases. The cases
// combine each chomping and indentation indicator, leading and trailing blanks, files with and without a final newline,
// and each kind of line end.
func TestScalars(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "scalars.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var c struct{ Text, Want string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{"\n", "\r\n", "\r"} {
			text := strings.ReplaceAll(c.Text, "\n", end)
			got, err := parseManifest(t.Context(), []byte(text))
			if err != nil || len(got) != 1 || got[0].text != c.Want {
				t.Errorf("%q: got %+v, %v, want %q", text, got, err, c.Want)
			}
		}
	}
}

// FuzzManifest checks that a key and a text value survive writing with the YAML library and reading, and that the error
// for any other text is a single line.
func FuzzManifest(f *testing.F) {
	f.Add("config/mode", "manual", "keys:\n- {key: a, value: 1, persist: true, ttl: 1s}\n")
	f.Add("0x1f", "~", "keys: &a\n- <<: *a\n- ? key\n  : !!str 1\n")
	f.Add("a: b", "- 1\n", "%YAML 1.2\n---\nkeys: [{key: \"\\0\", file: |\n x}]\n...\n")
	f.Fuzz(func(t *testing.T, key, value, text string) {
		if _, err := parseManifest(t.Context(), []byte(text)); err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("the error has several lines: %q", err)
		}
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			t.Skip("the library writes !!binary")
		}
		want := map[string]string{"key": key, "value": value}
		written, err := yaml.Marshal(map[string]any{"keys": []any{want}})
		var back struct{ Keys []map[string]string }
		if err != nil || yaml.Unmarshal(written, &back) != nil || !gocmp.Equal(back.Keys, []map[string]string{want}) {
			t.Skip("the library does not read what it wrote")
		}
		got, err := parseManifest(t.Context(), written)
		if err != nil || len(got) != 1 || got[0].key != key || got[0].text != value {
			t.Errorf("%q is read as %+v, %v", written, got, err)
		}
	})
}
