package check_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/check"
	"github.com/sscli/sscli/emulator"
)

// lines returns a store with keys of lines: two were written now, and one an hour ago.
func lines(t *testing.T) *emulator.Server {
	t.Helper()
	store := emulator.Start(t)
	apptest.Put(t, store, "line3/state", "9")
	store.FastForward(time.Hour)
	apptest.Put(t, store, "line1/state", "1")
	apptest.Put(t, store, "line2/state", "x")
	return store
}

// TestEach: conditions for each key of a pattern, the worst first, with a series for each.
func TestEach(t *testing.T) {
	t.Parallel()
	store := lines(t)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--max-age 2h", 0, `^SSCLI OK - match line\*/state: 3 keys \| 'match line\*/state keys'=3 'match line\*/state failing'=0\n`},
		{"--max-age 10m", 2, `^SSCLI CRITICAL - match line\*/state: line3/state: written (1h0m\d+s|60m) ago, expected at most 10m; 3 keys; 1 not OK \|.*failing'=1\n`},
		{"--max-age 10m,2h", 1, `^SSCLI WARNING - match line\*/state: line3/state: written`},
		{"--max 5,10", 2, `CRITICAL - match line\*/state: line2/state: the value is no number, expected a number; line3/state: 9, expected at most 5; 3 keys; 2 not OK`},
		{"--max-age 10m --count-min 4", 2, `3 keys, expected at least 4; line3/state`},
		{"--count-min 3", 0, `3 keys`},
		{"--missing", 3, `--missing without KEY`},
	} {
		code, stdout, stderr := run(t, store.URL(), append(strings.Fields("--match line*/state -o nagios "+tt.args), "--drift", "10s")...)
		if code != tt.code || !regexp.MustCompile(tt.want).MatchString(stdout) {
			t.Errorf("%s: %d, %q, %q, want %d, %s", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
	_, stdout, _ := run(t, store.URL(), "--match", "line*/state", "--max-age", "10m", "--value", "-o", "prometheus")
	for _, want := range []string{
		`sscli_match_key_state\{context="[^"]+",check="match line\*/state",match="line\*/state",key="line3/state"\} 2`, `sscli_match_key_state\{.*key="line1/state"\} 0`,
		`sscli_key_age_seconds\{.*key="line3/state"\} 36\d\d`, `sscli_key_value\{.*key="line3/state"\} 9`, `sscli_check_state\{.*\} 2`,
	} {
		if !regexp.MustCompile(`(?m)^` + want).MatchString(stdout) {
			t.Errorf("no %s in %s", want, stdout)
		}
	}
	url := listen(t, map[string]string{"SSCLI_URL": store.URL()}, "--match", "line*/state", "--max-age", "10m")
	scraped(t, url, `sscli_match_key_state\{.*line3/state"\} 2`, `sscli_match_key_state\{.*line1/state"\} 0`, `sscli_check_state\{.*\} 2`)
}

// TestEachBound: if a pattern matches more keys than check reads, the keys that it does not read are not OK.
func TestEachBound(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	for i := range 1001 {
		apptest.Put(t, store, fmt.Sprintf("k%04d", i), "1")
	}
	code, stdout, _ := run(t, store.URL(), "--match", "k*", "--max", "1", "-o", "nagios")
	if code != 1 || !strings.Contains(stdout, "only the first 1000 are checked") {
		t.Errorf("%d, %q", code, stdout)
	}
	code, stdout, _ = run(t, store.URL(), "--match", "k*", "--max", "0", "-o", "nagios")
	if code != 2 || !strings.Contains(stdout, "k0000: 1, expected at most 0; ") || !strings.Contains(stdout, "and 980 more") || len(stdout) > 4096 {
		t.Errorf("%d, %q", code, stdout)
	}
	if _, stdout, _ := run(t, store.URL(), "--match", "k*", "--max", "1", "-o", "prometheus"); strings.Count(stdout, "\nsscli_match_key_state{") != 1000 {
		t.Errorf("%d series", strings.Count(stdout, "\nsscli_match_key_state{"))
	}
}

// TestLongLine: a plugin's line has the worst first, as much as Nagios reads.
func TestLongLine(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	var args []string
	for i := range 400 {
		args = append(args, fmt.Sprintf("key-%03d", i))
		if i > 200 {
			apptest.Put(t, store, args[i], "5")
		}
	}
	apptest.Put(t, store, "key-399", "7")
	code, stdout, _ := run(t, store.URL(), append(args, "--max", "5,6", "-o", "nagios")...)
	if code != 2 || len(stdout) > 4096 || !strings.HasPrefix(stdout, "SSCLI CRITICAL - 202 of 400 checks: CRITICAL key-000: missing") || !regexp.MustCompile(`, and \d+ more \| 'key-201 value'=5;`).MatchString(stdout) {
		t.Errorf("%d, %d bytes, %q", code, len(stdout), stdout)
	}
}

// TestLabels: the metrics of two runs for one broker can be told apart, and so can numbers whose labels differ only in
// characters that performance data cannot have.
func TestLabels(t *testing.T) {
	t.Parallel()
	store := filled(t, emulator.Options{})
	twice := make(map[string]bool)
	for _, args := range [][]string{{"setpoint", "--label", "team=a"}, {"deploy", "--label", "team=b"}} {
		_, stdout, stderr := run(t, store.URL(), append(args, "-o", "prometheus", "--outfile", "-")...)
		if stdout == "" {
			t.Fatal(stderr)
		}
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			series := line[:strings.LastIndex(line, " ")]
			if twice[series] || !strings.Contains(series, `team="`) {
				t.Errorf("%s twice, or without its label", series)
			}
			twice[series] = true
		}
	}
	for _, bad := range []string{"team", "1=a", "context=a", "__x=a", "le=1"} {
		if code, _, stderr := run(t, store.URL(), "setpoint", "-o", "prometheus", "--label", bad); code != 2 || !strings.Contains(stderr, "--label ") {
			t.Errorf("%s: %d, %q", bad, code, stderr)
		}
	}
	keys := []string{"a=b", "a-b", `a\x3db`, "a|b", "a/b", "a'b", "a''b"}
	for _, key := range keys {
		apptest.Put(t, store, key, "")
	}
	_, stdout, _ := run(t, store.URL(), append(keys, "-o", "nagios")...)
	labels := make(map[string]bool)
	for _, label := range regexp.MustCompile(`'((?:[^']|'')+)'=0B`).FindAllString(stdout, -1) {
		labels[label] = true
	}
	if len(labels) != len(keys) {
		t.Errorf("%d labels: %s", len(labels), stdout)
	}
}

// TestListenState: --listen remembers what an earlier one saw, and does not overwrite a file that is not a state of check.
func TestListenState(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	apptest.Put(t, store, "l", "a")
	file := filepath.Join(t.TempDir(), "state")
	args := []string{"--lock", "l", "--changes-max", "0/1h", "--state", file}
	env := map[string]string{"SSCLI_URL": store.URL()}
	t.Run("first", func(t *testing.T) {
		url := listen(t, env, args...)
		scraped(t, url, `sscli_check_state.*} 0`)
	})
	apptest.Put(t, store, "l", "b")
	t.Run("second", func(t *testing.T) {
		url := listen(t, env, args...)
		scraped(t, url, `sscli_check_state.*} 2`)
	})
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("damaged", func(t *testing.T) {
		url := listen(t, env, append(args, "k")...)
		scraped(t, url, `sscli_check_state.*lock l.*} 3`, `sscli_check_state.*"k".*} 2`)
	})
	if text, err := os.ReadFile(file); err != nil || string(text) != "{" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestScrapeForms: one broker of several, compressed.
func TestScrapeForms(t *testing.T) {
	t.Parallel()
	store, other := filled(t, emulator.Options{}), filled(t, emulator.Options{})
	dir := t.TempDir()
	contexts, checks := filepath.Join(dir, "contexts.yaml"), filepath.Join(dir, "checks.yaml")
	for name, text := range map[string]string{
		contexts: "contexts:\n  lab: {url: " + store.URL() + "}\n  plant: {url: " + other.URL() + "}\n",
		checks:   "checks:\n- {key: setpoint, context: lab}\n- {key: setpoint, context: plant}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := listen(t, map[string]string{"SSCLI_CONFIG": contexts}, "-f", checks)
	scraped(t, url, `sscli_up\{context="lab"} 1`, `sscli_up\{context="plant"} 1`)
	if status, body := get(t, url+"?context=lab", nil); status != 200 || strings.Contains(body, "plant") || !strings.Contains(body, `context="lab"`) {
		t.Errorf("%d, %s", status, body)
	}
	if status, _ := get(t, url+"?context=none", nil); status != 404 {
		t.Errorf("%d", status)
	}
	for accept, want := range map[string]string{"gzip": "gzip", "deflate, gzip;q=0.5": "gzip", "gzip;q=0": "", "identity": "", "br": ""} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", accept)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var body io.Reader = resp.Body
		if got := resp.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%s: %q", accept, got)
		} else if got == "gzip" {
			if body, err = gzip.NewReader(resp.Body); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := io.ReadAll(body); err != nil || !strings.Contains(string(text), "sscli_build_info{") {
			t.Errorf("%s: %v, %s", accept, err, text)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestJSONFacts: facts are numbers, with their units in their names.
func TestJSONFacts(t *testing.T) {
	t.Parallel()
	store := filled(t, emulator.Options{})
	store.FastForward(time.Hour)
	_, stdout, _ := apptest.Run(t, []app.Command{{Name: "check", New: check.New}}, map[string]string{"SSCLI_URL": store.URL()}, "check", "setpoint", "--max", "30", "--max-age", "1d", "-o", "json")
	if !regexp.MustCompile(`"facts":\[{"name":"value","value":21.5},{"name":"size_bytes","value":4},{"name":"age_seconds","value":360\d(\.\d+)?}\]`).MatchString(stdout) {
		t.Error(stdout)
	}
}
