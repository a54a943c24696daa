package examples

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/full"
)

// TestAlerts: the rules are valid, and each alert fires and ends.
func TestAlerts(t *testing.T) {
	t.Parallel()
	full.Program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}, {"check", "config", "prometheus.yml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = "monitoring"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	rules, err := os.ReadFile("monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("monitoring/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllSubmatch(rules, -1) {
		name := string(alert[1])
		if fires, ends := regexp.MustCompile("alertname: "+name+`\s+exp_alerts:\n`), "alertname: "+name+", exp_alerts: []"; !fires.Match(tests) || !bytes.Contains(tests, []byte(ends)) {
			t.Errorf("%s: no test in which it fires and ends", name)
		}
	}
}

// TestMetricNames: rules and dashboard use only metrics that docs/monitoring.md lists.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := os.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(dashboard) {
		t.Error("the dashboard is not JSON")
	}
	rules, err := os.ReadFile("monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`sscli_[a-z_]+`).FindAllString(string(dashboard)+string(rules), -1)
	if len(used) < 20 {
		t.Errorf("only %d metrics", len(used))
	}
	for _, name := range used {
		if name != "sscli_" && !bytes.Contains(page, []byte("`"+name+"`")) {
			t.Errorf("docs/monitoring.md does not list %s", name)
		}
	}
}

// TestMonitoring runs the file of checks, and the command of the systemd service, against a store.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	sscli := build(t)
	if out, err := exec.Command(sscli, "check", "--lint", "-f", "monitoring/checks.yaml").CombinedOutput(); err != nil {
		t.Errorf("--lint: %v: %s", err, out)
	}
	unit, err := os.ReadFile("monitoring/sscli-check.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`ExecStart=/usr/bin/sscli (.*)`).FindSubmatch(unit)
	if line == nil {
		t.Fatal("no ExecStart")
	}
	dir := t.TempDir()
	metrics := filepath.Join(dir, "sscli.prom")
	args := strings.NewReplacer("/etc/sscli/checks.yaml", "monitoring/checks.yaml", "/var/lib/node_exporter/sscli.prom", metrics, "/var/lib/sscli/checks", filepath.Join(dir, "state")).Replace(string(line[1]))
	cmd := exec.Command(sscli, append([]string{"serve", "--", sscli}, strings.Fields(args)...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(metrics)
	if err != nil || !bytes.Contains(text, []byte("\nsscli_up{")) {
		t.Fatalf("%v, %s", err, text)
	}
	full.Program(t, "promtool")
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v: %s", err, out)
	}
}

// TestDashboard: each query of the dashboard has an answer from the series of a live `check --listen`.
func TestDashboard(t *testing.T) {
	t.Parallel()
	full.Program(t, "promtool")
	secure := httptest.NewTLSServer(nil) // for its certificate
	defer secure.Close()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	store := emulator.Start(t, emulator.Options{TLS: secure.TLS})
	for key, value := range map[string]string{"setpoint": "21.5", "machine/state": `{"temperature": 20}`, "deploy": "ci:1", "line1/state": "1"} {
		if _, err := store.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"exp": 4000000000}`))
	for name, text := range map[string]string{
		ca:    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})),
		token: "e30." + payload + ".e30",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(build(t), "check", "-f", "monitoring/checks.yaml", "--listen", "127.0.0.1:0", "-o", "raw", "-u", store.URL(), "--ca-file", ca, "--sat-file", token)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	scrape := func() string {
		resp, err := http.Get(strings.TrimSpace(url))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := scrape()
	for wants := []string{"sscli_match_key_state", "sscli_lock_held_seconds", "sscli_clock_skew_seconds", "sscli_key_value", "sscli_token_expiry"}; ; text = scrape() {
		if !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(text, "\n"+want) }) {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal(text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	written, err := os.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(written, &board); err != nil {
		t.Fatal(err)
	}
	type series struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	type sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	type query struct {
		Expr string   `json:"expr"`
		At   string   `json:"eval_time"`
		Want []sample `json:"exp_samples"`
	}
	var live []series
	for line := range strings.Lines(text) {
		if i := strings.LastIndex(line, " "); !strings.HasPrefix(line, "#") {
			value := strings.TrimSpace(line[i:])
			live = append(live, series{line[:i], strings.Repeat(value+" ", 10)})
		}
	}
	var queries []query
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expr := strings.ReplaceAll(target.Expr, "$context", ".*")
			queries = append(queries, query{"count(" + expr + ") > bool 0", "5m", []sample{{"{}", 1}}})
		}
	}
	if len(queries) < 10 {
		t.Errorf("only %d queries", len(queries))
	}
	test, err := json.Marshal(map[string]any{"evaluation_interval": "1m", "tests": []any{map[string]any{"interval": "1m", "input_series": live, "promql_expr_test": queries}}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "test.yaml") // JSON is YAML
	if err := os.WriteFile(name, test, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "test", "rules", name).CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, text)
	}
}
