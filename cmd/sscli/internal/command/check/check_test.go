package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/check"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

var run = apptest.Runner(app.Command{Name: "check", New: check.New})

// filled returns a store with a key of each kind that the tables check.
func filled(t *testing.T, o emulator.Options) *emulator.Server {
	t.Helper()
	store := emulator.Start(t, o)
	for key, value := range map[string]string{
		"setpoint": "21.5", "big": "1e307", "cold": "-5", "long": strings.Repeat("h", 300) + "-1", "config": `{"temp": 42, "mode": "auto", "big": 9007199254740993}`, "sites": "{\"id\": 1}\n",
		"bad sites": "{\"id\": 1}\nnonsense\n", "deploy": "ci:17", "odd|key": "x\ny'z", "empty": "", "twice": "{\"id\":1,\"id\":2}\n", "a/1": "", "a/2": "",
	} {
		if _, err := store.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestPlugin judges the output of a monitoring plugin: one line of text, the exit code of its state, and
// performance data 'label'=value[unit];[warning];[critical].
func TestPlugin(t *testing.T) {
	t.Parallel()
	store := filled(t, emulator.Options{})
	store.FastForward(20 * time.Minute) // the age of all keys
	shape := regexp.MustCompile(`^SSCLI (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+( \|( '([^'=|\n]|'')+'=-?[0-9.]+(s|B)?(;([0-9.]+:?|~:)?[0-9.]*;([0-9.]+|~):?[0-9.]*)?)+)?\n$`)
	for _, tt := range []struct {
		args string // separated by blanks
		code int
		want string // a regular expression
	}{
		{"setpoint", 0, `^SSCLI OK - setpoint: 4 bytes \| 'setpoint size'=4B\n`},
		{"nothing", 2, `^SSCLI CRITICAL - nothing: missing, expected the key to exist\n`},
		{"nothing --missing", 0, `^SSCLI OK - nothing: missing\n`},
		{"setpoint --missing", 2, `exists, expected no such key`},
		{"setpoint --max-age 10m,1h", 1, `^SSCLI WARNING - setpoint: written 20m\d+s ago, expected at most 10m; 4 bytes \|.*'setpoint age'=12\d\d(\.\d+)?s;600;3600`},
		{"setpoint --max-age 10m", 2, `expected at most 10m; 4 bytes \|.*'setpoint age'=12\d\d(\.\d+)?s;;600`},
		{"setpoint --max-age 1d", 0, `^SSCLI OK`},
		{"setpoint --min-age 1h,10m", 1, `expected at least 1h; 4 bytes \|.*s;3600:;600:`},
		{"setpoint --max-size 3", 2, `4 bytes, expected at most 3 \| 'setpoint size'=4B;;3\n`},
		{"setpoint --max-size 1KiB", 0, `'setpoint size'=4B;;1024\n`},
		{"setpoint --min 10 --max 21", 2, `21\.5, expected at most 21; 4 bytes \| 'setpoint value'=21\.5;;10:21 `},
		{"setpoint --min 22,20 --max 30", 1, `21\.5, expected at least 22; 4 bytes \| 'setpoint value'=21\.5;22:;20:30 `},
		{"setpoint --min 20 --max 21,30", 1, `21\.5, expected at most 21; 4 bytes \| 'setpoint value'=21\.5;~:21;20:30 `},
		{"setpoint --min 22,20 --max 25,30", 1, `'setpoint value'=21\.5;22:25;20:30 `},
		{"setpoint --min 30 --max 40", 2, `21\.5, expected at least 30; 4 bytes`},
		{"setpoint --min 30 --max 20", 3, `min 30 together with max 20: no number is both`},
		{"setpoint --min-age 1h,10m --max-age 2h", 1, `expected at least 1h; 4 bytes \|.*s;3600:;600:7200`},
		{"setpoint --min-age 1h --max-age 2h", 2, `expected at least 1h; 4 bytes`},
		{"setpoint --min 30", 2, `21\.5, expected at least 30; 4 bytes \| 'setpoint value'=21\.5;;30:`},
		{"config --json .temp --max 40,50", 1, `\.temp is 42, expected at most 40`},
		{"config --json temp --min 10 --max 50", 0, `^SSCLI OK`},
		{"config --json .none --min 10", 2, `the value has no field \.none`},
		{"config --json .mode --equals auto", 0, `^SSCLI OK`},
		{"config --json .mode --equals manual", 2, `\.mode differs, expected "manual"`},
		{"config --json .mode --equals manual --value", 2, `\.mode is "auto", expected "manual"`},
		{"config --json .big --equals 9007199254740992", 2, `differs`},
		{"config --max 3", 2, `the value is no number, expected a number`},
		{"setpoint --json .a", 2, `the value has no field \.a`},
		{"empty --json .a", 2, `the value is not JSON`},
		{"setpoint --value-matches ^2", 0, `^SSCLI OK`},
		{"setpoint --value-matches ^3", 2, `the value does not match \^3`},
		{"sites --dataset", 0, `^SSCLI OK`},
		{"bad|sites --dataset", 2, `not a data set: .*2`},
		{"twice --dataset", 2, `not a data set: line 1, column 1: the record has the field "id" twice`},
		{"odd~key --value", 0, `^SSCLI OK - odd/key: "x\\\\ny'z"`},
		{"--lock deploy", 0, `^SSCLI OK - lock deploy: held by "ci:17"\n`},
		{"--lock deploy --free", 2, `held by "ci:17", expected it to be free`},
		{"--lock deploy --holder ^ci:", 0, `^SSCLI OK`},
		{"--lock deploy --holder ^ann", 2, `expected a holder that matches \^ann`},
		{"--lock long --holder -1$", 0, `^SSCLI OK`},
		{"--match [", 3, `match "\[": \[ without \]`},
		{"cold --max 9", 0, `'cold value'=-5;;~:9 `},
		{"big --max 9", 2, `'big value'=1000\d+;;~:9 `},
		{"--lock none", 0, `lock none: free`},
		{"--lock none --held", 2, `free, expected it to be held`},
		{"--match a/* --count-min 2 --count-max 2", 0, `2 keys \| 'match a/\* keys'=2;;2:2\n`},
		{"--match a/* --count-min 3 --count-max 9", 2, `2 keys, expected at least 3 \| 'match a/\* keys'=2;;3:9\n`},
		{"--match a/* --count-min 3,2 --count-max 9", 1, `2 keys, expected at least 3 \|`},
		{"--match a/* --count-min 1 --count-max 1,9", 1, `2 keys, expected at most 1 \|`},
		{"--match a/* --count-min 3", 2, `2 keys, expected at least 3 \| 'match a/\* keys'=2;;3:`},
		{"--match a/* --count-max 0,1", 2, `2 keys, expected at most 1`},
		{"--rtt 1h", 0, `the store answers, .* round trip \| 'broker rtt'=[0-9.]+s;;3600\n`},
		{"--cert-expires 14d", 3, `the connection has no TLS`},
		{"--skew 1m", 2, `this machine's clock is (20m|19m5)\d+s behind the store's, expected at most 1m`},
		{"setpoint nothing config", 2, `^SSCLI CRITICAL - 1 of 3 checks: CRITICAL nothing: missing`},
		{"--frob", 3, `^SSCLI UNKNOWN - unknown flag: --frob`},
		{"setpoint --max-age 10", 3, `^SSCLI UNKNOWN - --max-age: "10" has no unit`},
		{"setpoint --max-age 2h,1h", 3, `must be reached before`},
		{"setpoint --held", 3, `--held without --lock NAME`},
		{"setpoint --value-matches [", 3, `^SSCLI UNKNOWN - --value-matches: .*missing closing \]`},
		{"--lock deploy --held-max 1h", 3, `one look cannot tell; try: --state FILE`},
		{"-f none.yaml", 3, `^SSCLI UNKNOWN - open none.yaml`},
	} {
		args := strings.Fields(tt.args)
		for i := range args {
			args[i] = strings.NewReplacer("bad|sites", "bad sites", "odd~key", "odd|key").Replace(args[i])
		}
		code, stdout, stderr := run(t, store.URL(), append(args, "-o", "nagios")...)
		if code != tt.code || !regexp.MustCompile(tt.want).MatchString(stdout) || stderr != "" {
			t.Errorf("%s:\ngot  %d, %q, %q\nwant %d, %s", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
		if !shape.MatchString(stdout) {
			t.Errorf("%s: %q is not the output of a plugin", tt.args, stdout)
		}
		if state := []string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[min(code, 3)]; !strings.HasPrefix(stdout, "SSCLI "+state+" ") {
			t.Errorf("%s: exit code %d with %q", tt.args, code, stdout)
		}
	}
}

// TestNoBroker: a broker that does not answer is critical for a monitoring plugin, has the usual exit code in other
// forms, and is a metric.
func TestNoBroker(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	url := store.URL()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string]struct {
		code int
		text string
	}{
		"nagios":     {2, "SSCLI CRITICAL - a: connect to 127.0.0.1:"},
		"raw":        {fault.CodeConnection, "fail\ta\tconnect to 127.0.0.1:"},
		"prometheus": {0, "} 0\n# HELP sscli_check_state"},
	} {
		if code, stdout, stderr := run(t, url, "a", "-o", form); code != want.code || !strings.Contains(stdout, want.text) {
			t.Errorf("%s: %d, %q, %q", form, code, stdout, stderr)
		}
	}
}

// TestSkewedClock: an age is right while this machine's clock is 90 s ahead of the store's, or behind it. The limit
// leaves the minute by which the clock of a writer may have been ahead.
func TestSkewedClock(t *testing.T) {
	t.Parallel()
	age := regexp.MustCompile(`written 10m\d+s ago`)
	for _, skew := range []time.Duration{90 * time.Second, -90 * time.Second} {
		store := filled(t, emulator.Options{Skew: skew})
		store.FastForward(10 * time.Minute)
		// After this, the store's clock is 10 min ± 90 s ahead of the local one.
		code, stdout, stderr := run(t, store.URL(), "setpoint", "--max-age", "12m", "--min-age", "10m")
		if code != 0 || !age.MatchString(stdout) {
			t.Errorf("skew %v: %d, %q, %q", skew, code, stdout, stderr)
		}
		code, stdout, _ = run(t, store.URL(), "setpoint", "--max-age", "11m", "--no-write")
		if !strings.Contains(stdout, "by this machine's clock") {
			t.Errorf("skew %v, without a write: %d, %q", skew, code, stdout)
		}
	}
}

// TestNotAllowed: a key that may not be read is unknown, and the others are checked.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	var closed atomic.Bool
	store := filled(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return !closed.Load() || a.On != "config" && a.Method != emulator.Write })})
	closed.Store(true)
	code, stdout, _ := run(t, store.URL(), "setpoint", "config", "--max-age", "1h")
	if code != fault.CodeNo || !strings.HasPrefix(stdout, "pass\tsetpoint\t\"21.5\"; 4 bytes; written ") || !strings.Contains(stdout, "by this machine's clock") || !strings.Contains(stdout, "skip\tconfig\t") {
		t.Errorf("%d, %q", code, stdout)
	}
}

// TestState: --state remembers who held a lock, how often it changed hands, and since when a check is in its
// state.
func TestState(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	file := filepath.Join(t.TempDir(), "state")
	for i, step := range []struct{ holder, want string }{
		{"a", `pass\tlock l\t.*0 changes of the holder in 1h0m0s`},
		{"a", `pass\tlock l\t.*0 changes`},
		{"b", `pass\tlock l\t1 change of the holder in 1h0m0s; |held by "b"; 1 change of`},
		{"", `pass\tlock l\tfree; 1 change of`},
		{"c", `fail\tlock l\t2 changes of the holder in 1h0m0s, expected at most 1; held by "c"`},
		{"c", `fail\tlock l\t2 changes of the holder in 1h0m0s, expected at most 1; held by "c", for `},
	} {
		if step.holder != "" {
			if _, err := store.Set("l", step.holder); err != nil {
				t.Fatal(err)
			}
		} else if _, err := store.Delete("l"); err != nil {
			t.Fatal(err)
		}
		_, stdout, stderr := run(t, store.URL(), "--lock", "l", "--changes-max", "1/1h", "--held-max", "1h", "--state", file)
		if !regexp.MustCompile(step.want).MatchString(stdout) {
			t.Errorf("step %d: %q, %q, want %s", i, stdout, stderr, step.want)
		}
	}
	if code, stdout, stderr := run(t, store.URL(), "--lock", "l", "--changes-max", "1/1h", "--held-max", "1h", "--state", file, "-o", "prometheus"); code != 0 || !regexp.MustCompile(`sscli_check_state.* 2\n`).MatchString(stdout) {
		t.Errorf("the metrics do not know of earlier runs: %d, %q, %q", code, stdout, stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", info, err)
	}
	for _, text := range []string{"", "{", "{}", "[]", `{"users":["ann"]}`, `{"checks":{"a":{"key":"b"}}}`, `{"checks":{}} {"checks":{}}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := run(t, store.URL(), "--lock", "l", "--state", file); code != fault.CodeUsage || !strings.Contains(stderr, "not a file of --state") {
			t.Errorf("a file with %q: %d, %q", text, code, stderr)
		}
		if left, err := os.ReadFile(file); string(left) != text {
			t.Errorf("a file with %q has %q now, %v", text, left, err)
		}
	}
}

// TestStateBytes: a holder that is not UTF-8, as a long one is whose beginning ends within a character, is the same in
// the next run.
func TestStateBytes(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	file := filepath.Join(t.TempDir(), "state")
	for _, holder := range []string{"\xff\xfe", "a" + strings.Repeat("é", 256)} {
		apptest.Put(t, store, "l", holder)
		var first string
		for range 2 {
			_, stdout, stderr := run(t, store.URL(), "--lock", "l", "--changes-max", "9/1h", "--state", file)
			got := regexp.MustCompile(`\d+ changes?`).FindString(stdout)
			if first == "" {
				first = got
			}
			if got == "" || got != first {
				t.Errorf("%q, %q, want %q again", stdout, stderr, first)
			}
		}
	}
}

// TestStateTogether: runs at the same time lose nothing of each other.
func TestStateTogether(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	file := filepath.Join(t.TempDir(), "state")
	var running sync.WaitGroup
	const runs = 16
	for i := range runs {
		running.Go(func() { run(t, store.URL(), "--lock", fmt.Sprint("l", i), "--state", file) })
	}
	running.Wait()
	text, err := os.ReadFile(file)
	if got := len(regexp.MustCompile(`lock l\d+"`).FindAll(text, -1)); got != runs {
		t.Errorf("%d checks in %s, %v", got, text, err)
	}
}

// TestStateCounts: what no earlier run read is no change: of a broker that did not answer, of another broker, or of
// a lock with the name of a key.
func TestStateCounts(t *testing.T) {
	t.Parallel()
	gone, one, two := emulator.Start(t), emulator.Start(t), emulator.Start(t)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "state")
	for _, store := range []*emulator.Server{one, two} {
		for _, key := range []string{"k", "lock k"} {
			apptest.Put(t, store, key, "a")
		}
	}
	changes := func(store *emulator.Server, want string, args ...string) {
		t.Helper()
		_, stdout, stderr := run(t, store.URL(), append(args, "--changes-max", "9/1h", "--state", file)...)
		if got := regexp.MustCompile(`\d+ changes?`).FindAllString(stdout, -1); strings.Join(got, ", ") != want {
			t.Errorf("%q, %q, want %s", stdout, stderr, want)
		}
	}
	changes(gone, "", "k")
	changes(one, "0 changes", "k")
	changes(two, "0 changes", "k")
	changes(one, "0 changes", "k")
	apptest.Put(t, one, "k", "b")
	changes(one, "1 change", "k")
	changes(two, "0 changes", "k")
	for range 2 {
		changes(one, "0 changes", "lock k")
		changes(one, "0 changes", "--lock", "k")
	}
}

// TestOnce: what is given twice is checked once, and series can be told apart.
func TestOnce(t *testing.T) {
	t.Parallel()
	store := filled(t, emulator.Options{})
	dir := t.TempDir()
	contexts, checks := filepath.Join(dir, "contexts.yaml"), filepath.Join(dir, "checks.yaml")
	for name, text := range map[string]string{
		contexts: "contexts:\n  lab: {url: " + store.URL() + "}\n",
		checks:   "checks:\n- {key: setpoint}\n- {key: deploy, context: lab}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"SSCLI_CONFIG": contexts, "SSCLI_CONTEXT": "lab"}
	series := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := apptest.Run(t, []app.Command{{Name: "check", New: check.New}}, env, append([]string{"check", "-o", "prometheus"}, args...)...)
		if code != 0 {
			return stderr
		}
		return strings.Join(regexp.MustCompile(`(?m)^sscli_(up|check_state).*`).FindAllString(stdout, -1), "\n")
	}
	want := `sscli_up{context="lab"} 1` + "\n" + `sscli_check_state{context="lab",check="setpoint"} 0`
	if got := series("setpoint", "setpoint"); got != want {
		t.Errorf("the key twice:\n%s", got)
	}
	if got := series("-f", checks); got != want+"\n"+`sscli_check_state{context="lab",check="deploy"} 0` {
		t.Errorf("the context twice:\n%s", got)
	}
	if got := series("lock a", "--lock", "a"); !strings.Contains(got, "two checks are called lock a") {
		t.Errorf("a key with the name of a lock's check:\n%s", got)
	}
	if err := os.WriteFile(checks, []byte("checks:\n- {key: deploy}\n- {key: deploy, context: lab}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := series("-f", checks); !strings.Contains(got, ":3: a second check deploy, as in line 2") {
		t.Errorf("the check twice:\n%s", got)
	}
}

// TestFile: a file of checks, with contexts, labels and names, as results and as metrics.
func TestFile(t *testing.T) {
	t.Parallel()
	store := filled(t, emulator.Options{})
	dir := t.TempDir()
	file, out := filepath.Join(dir, "checks.yaml"), filepath.Join(dir, "sscli.prom")
	if err := os.WriteFile(file, []byte(`checks:
- {key: setpoint, max-age: "10m,1h", value: true, labels: {line: "3\""}}
- {name: the lock, lock: deploy, held: true}
- {match: "a/*", count-min: 1}
- {name: reply, rtt: 10m}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, store.URL(), "-f", file)
	if code != 0 || strings.Count(stdout, "pass\t") != 4 || !strings.HasSuffix(stdout, "summary\t4\t0\t0\t0\n") {
		t.Errorf("%d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, stderr = run(t, store.URL(), "-f", file, "-o", "prometheus", "--outfile", out); code != 0 || stdout != "" {
		t.Errorf("%d, %q, %q", code, stdout, stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`sscli_up{context="` + store.Addr().String() + `"} 1`, `check="setpoint",key="setpoint",line="3\""} 21.5`,
		`sscli_lock_held{context="` + store.Addr().String() + `",check="the lock",lock="deploy"} 1`, `match="a/*"} 2`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if code, stdout, stderr := run(t, "", "-f", file, "--lint"); code != 0 || !strings.Contains(stdout, "4 checks, no mistakes") {
		t.Errorf("lint: %d, %q, %q", code, stdout, stderr)
	}
}

// TestLint: every mistake of a file is reported with its line.
func TestLint(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(`checks:
- {key: a, max-age: x}
- {key: a, lock: b}
- {lock: a, max-size: 3}
- {key: a, frob: 1}
- {}
- {key: a, labels: {check: x, "1": y}}
- {key: a, exists: yes}
- {key: ok}
- {key: [a]}
- {key: a, max-age: "2h,1h"}
- {lock: a, held: false}
- {key: z, max-age: 1h, max-age: 2h}
- {key: y, key: x}
- {key: w, context: lab2, held: true, max-age: y}
- {lock: a, free: true}
other: 1
`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, "", "-f", file, "--lint", "-o", "human")
	for _, want := range []string{
		`:2:21: max-age: "x": expected a duration`, ":3:12: expected one of key, lock, match", ":4:13: max-size: not for a check of a lock, but of a key",
		`:5:12: unknown field "frob"`, ":6:3: nothing to check", ":7:21: labels: check: series have this label already", `:7:31: labels: "1": expected letters`,
		":8:20: exists: expected true or false", ":10:9: key: expected text", ":11:21: max-age: \"2h,1h\": the first limit warns", ":12:19: held: false: write free: true",
		`:17:1: unknown field "other"`, `:13:25: the key "max-age" occurs twice`, `:14:12: the key "key" occurs twice`, `:15:3: context: unknown context "lab2"`,
		":15:27: held: not for a check of a key", `:15:48: max-age: "y"`, ":16:3: a second check lock a, as in line",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in %s", want, stdout)
		}
	}
	if code != fault.CodeNo || stderr != "" || strings.Contains(stdout, "c.yaml:9:") {
		t.Errorf("%d, %q, %s", code, stderr, stdout)
	}
	if code, stdout, _ := run(t, "", "-f", file, "--lint", "-o", "json"); code != fault.CodeNo || !strings.Contains(stdout, `{"op":"check_finding","file":`+strconv.Quote(file)+`,"line":6,"column":3,"message":"nothing to check`) {
		t.Errorf("%d, %s", code, stdout)
	}
	if code, _, stderr := run(t, "", "-f", file); code != fault.CodeUsage || !strings.Contains(stderr, ":2:21: max-age") {
		t.Errorf("%d, %s", code, stderr)
	}
}

// TestStateUnwritable: a file of --state that cannot be written hides no verdict.
func TestStateUnwritable(t *testing.T) {
	t.Parallel()
	store := filled(t, emulator.Options{})
	for name, state := range map[string]string{
		"no directory": filepath.Join(t.TempDir(), "nosuch", "state"),
		"no lock":      filepath.Join(t.TempDir(), "state"),
	} {
		if name == "no lock" {
			if err := os.MkdirAll(state+".lock", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct {
			args   string
			code   int
			stdout string
			stderr string // empty = nothing
		}{
			{"nothing -o nagios", 2, "^SSCLI CRITICAL - nothing: missing, .*; --state: .*state", ""},
			{"setpoint -o nagios", 3, "^SSCLI UNKNOWN - setpoint: 4 bytes; --state: .*state.* \\| 'setpoint size'=4B\n", ""},
			{"setpoint -o prometheus", 2, "(?m)^sscli_key_present.*setpoint.* 1$", "--state: "},
			{"nothing -o raw", 2, "^fail\t.*nothing", "--state: "},
		} {
			code, stdout, stderr := run(t, store.URL(), append(strings.Fields(tt.args), "--state", state)...)
			if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) || !strings.Contains(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
				t.Errorf("%s, %s: %d, %q, %q, want %d, %s", name, tt.args, code, stdout, stderr, tt.code, tt.stdout)
			}
		}
	}
}
