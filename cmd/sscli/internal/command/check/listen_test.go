package check_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/command/check"
	"github.com/sscli/sscli/emulator"
)

// listen starts check --listen and returns its URL. The command ends with the test.
func listen(t *testing.T, env map[string]string, args ...string) (url string) {
	t.Helper()
	c := apptest.Start(t, []app.Command{{Name: "check", New: check.New}}, env, append([]string{"check", "--listen", "127.0.0.1:0", "-o", "raw"}, args...)...)
	url, err := c.Stdout.ReadString('\n')
	if err != nil {
		_, stderr := c.Wait(t)
		t.Fatalf("%v: %s", err, stderr)
	}
	t.Cleanup(func() {
		_, _ = io.Copy(io.Discard, c.Stdout)
		c.Wait(t)
	})
	return strings.TrimSpace(url)
}

func get(t *testing.T, url string, change func(*http.Request)) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// scraped scrapes until all the regular expressions match.
func scraped(t *testing.T, url string, wants ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, body := get(t, url, nil)
		missing := ""
		for _, want := range wants {
			if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(body) {
				missing = want
			}
		}
		if missing == "" {
			return body
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no %s in\n%s", missing, body)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	store := filled(t, emulator.Options{})
	url := listen(t, map[string]string{"SSCLI_URL": store.URL()}, "setpoint", "later", "--lock", "deploy", "--match", "a/*", "--value", "--changes-max", "100/1h")
	own := `\{context="` + regexp.QuoteMeta(store.Addr().String()) + `"`
	scraped(t, url, "sscli_up"+own+"} 1", "sscli_key_present"+own+`,check="setpoint",key="setpoint"} 1`, "sscli_key_present"+own+`,check="later",key="later"} 0`,
		"sscli_key_value"+own+`,check="setpoint",key="setpoint"} 21.5`, "sscli_key_changes_total.*} 0", "sscli_lock_held.*} 1", "sscli_match_keys.*} 2",
		"sscli_check_state.*later.*} 2", "sscli_clock_skew_seconds.*")
	for _, holder := range []string{"ci:18", "ci:18", "ci:19"} {
		apptest.Put(t, store, "deploy", holder)
	}
	apptest.Remove(store, "deploy")
	apptest.Put(t, store, "later", "7")
	apptest.Put(t, store, "setpoint", "22")
	store.FastForward(time.Hour)
	body := scraped(t, url, "sscli_key_value.*setpoint.*} 22", "sscli_key_changes_total.*setpoint.*} 1", "sscli_key_changes_total.*later.*} 1", "sscli_key_present.*later.*} 1",
		"sscli_lock_held.*} 0", "sscli_lock_holder_changes_total.*} 2", "sscli_check_state.*later.*} 0")
	if strings.Contains(body, "sscli_lock_held_seconds{") || strings.Contains(body, "ci:19") {
		t.Errorf("a free lock, and a value that nobody asked for: %s", body)
	}
	store.DropAll()
	scraped(t, url, "sscli_watch_gaps_total.*} 1", "sscli_up.*} 1", "sscli_key_value.*setpoint.*} 22")
}

// TestDeadBroker: a broker that is frozen, or refuses, is down, and its keys are gone; another one is not delayed.
func TestDeadBroker(t *testing.T) {
	t.Parallel()
	good, frozen := filled(t, emulator.Options{}), filled(t, emulator.Options{})
	refuses := filled(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": "x"})})
	gone := emulator.Start(t)
	goneURL := gone.URL()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	contexts, checks := filepath.Join(dir, "contexts.yaml"), filepath.Join(dir, "checks.yaml")
	text, list := "contexts:\n", "checks:\n"
	for name, url := range map[string]string{"good": good.URL(), "frozen": frozen.URL(), "refuses": refuses.URL(), "gone": goneURL} {
		text += fmt.Sprintf("  %s: {url: %q}\n", name, url)
		list += fmt.Sprintf("- {key: setpoint, context: %s}\n", name)
	}
	for name, content := range map[string]string{contexts: text, checks: list} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := listen(t, map[string]string{"SSCLI_CONFIG": contexts}, "-f", checks)
	scraped(t, url, `sscli_up\{context="good"} 1`, `sscli_up\{context="frozen"} 1`, `sscli_up\{context="refuses"} 0`, `sscli_up\{context="gone"} 0`)
	frozen.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true, NoPuback: true} })
	body := scraped(t, url, `sscli_up\{context="good"} 1`, `sscli_up\{context="frozen"} 0`, `sscli_check_state\{context="frozen".*} 2`)
	if strings.Contains(body, `sscli_key_present{context="frozen"`) || !strings.Contains(body, `sscli_key_present{context="good"`) {
		t.Errorf("keys of a frozen broker, or none of the other: %s", body)
	}
	frozen.Intercept(nil)
	scraped(t, url, `sscli_up\{context="frozen"} 1`, `sscli_key_present\{context="frozen".*} 1`)
}

// TestNotYet: before the first answer, the broker is not up, and nothing is judged.
func TestNotYet(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	url := listen(t, map[string]string{"SSCLI_URL": "mqtt://" + ln.Addr().String()}, "--match", "a*", "--count-max", "9", "--rtt", "1h")
	if _, body := get(t, url, nil); !regexp.MustCompile(`sscli_up.*} 0\n`).MatchString(body) || regexp.MustCompile(`sscli_check_state.*} 0\n`).MatchString(body) {
		t.Errorf("an unknown broker: %s", body)
	}
}

// TestListenRequests: who may read, and what.
func TestListenRequests(t *testing.T) {
	t.Parallel()
	store := filled(t, emulator.Options{})
	env := map[string]string{"SSCLI_URL": store.URL()}
	url := listen(t, env, "setpoint")
	for name, tt := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"metrics":      {"", nil, 200},
		"another path": {"/x", nil, 404},
		"POST":         {"", func(r *http.Request) { r.Method = http.MethodPost }, 405},
		"HEAD":         {"", func(r *http.Request) { r.Method = http.MethodHead }, 200},
		"another host": {"", func(r *http.Request) { r.Host = "evil.example" }, 403},
		"localhost":    {"", func(r *http.Request) { r.Host = "localhost:1" }, 200},
	} {
		if status, body := get(t, url+tt.path, tt.change); status != tt.status {
			t.Errorf("%s: %d, %q", name, status, body)
		}
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, append([]byte("prom:"), hash...), 0o600); err != nil {
		t.Fatal(err)
	}
	url = listen(t, env, "setpoint", "--users", users)
	for password, want := range map[string]int{"": 401, "wrong": 401, "secret": 200} {
		if status, _ := get(t, url, func(r *http.Request) { r.SetBasicAuth("prom", password) }); status != want {
			t.Errorf("password %q: %d, want %d", password, status, want)
		}
	}
	code, _, stderr := run(t, store.URL(), "setpoint", "--listen", "0.0.0.0:0")
	if code != 2 || !strings.Contains(stderr, "anybody who reaches that address") {
		t.Errorf("all addresses: %d, %q", code, stderr)
	}
}

// TestUnwatchable: a key that may not be watched is unknown, and does not keep the others from being watched.
func TestUnwatchable(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.Method != emulator.Read || a.On != "secret" })})
	apptest.Put(t, store, "setpoint", "1")
	url := listen(t, map[string]string{"SSCLI_URL": store.URL()}, "setpoint", "secret")
	scraped(t, url, `sscli_key_present.*setpoint.*} 1`, `sscli_check_state.*secret.*} 3`, `sscli_check_state.*setpoint.*} 0`)
}
