package examples

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
