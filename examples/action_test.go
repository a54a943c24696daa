package examples

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sscli/sscli/internal/testkit/full"
)

// A job is a job of a CI system that runs the steps of the action.
type job struct {
	t    *testing.T
	dir  string
	vars map[string]string // inputs, and the variables that the runner sets
}

func newJob(t *testing.T) job {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the release that the test makes is for Linux on amd64")
	}
	dir := t.TempDir()
	j := job{t, dir, map[string]string{"RUNNER_TEMP": dir, "RUNNER_OS": "Linux", "RUNNER_ARCH": "X64", "GITHUB_ACTIONS": "true", "SSCLI_LISTEN": "127.0.0.1:0"}}
	for _, name := range []string{"GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH"} {
		j.vars[name] = filepath.Join(dir, name)
		if err := os.WriteFile(j.vars[name], nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// step runs a step and returns what it printed.
func (j job) step(name string) (string, error) {
	j.t.Helper()
	cmd := exec.Command("bash", "../scripts/action.sh", name)
	cmd.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(j.vars)) {
		cmd.Env = append(cmd.Env, name+"="+j.vars[name])
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// wrote returns the lines NAME=VALUE of a file of the runner.
func (j job) wrote(file string) map[string]string {
	j.t.Helper()
	text, err := os.ReadFile(j.vars[file])
	if err != nil {
		j.t.Fatal(err)
	}
	values := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[name] = value
	}
	return values
}

// TestAction runs the action's steps as a runner does, with a release by checksum: a later step has the variables of a
// store with keys, and the last one prints the log and ends the server.
func TestAction(t *testing.T) {
	t.Parallel()
	full.Program(t, "curl")
	sscli := build(t)
	j := newJob(t)
	release := filepath.Join(j.dir, "releases", "download", "v1.2.3")
	seed := filepath.Join(j.dir, "seed")
	for _, dir := range []string{release, seed} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(seed, "setpoint"), []byte("21.5"), 0o600); err != nil {
		t.Fatal(err)
	}
	const archive = "sscli_1.2.3_linux_amd64.tar.gz"
	if out, err := exec.Command("tar", "-czf", filepath.Join(release, archive), "-C", filepath.Dir(sscli), "sscli").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(release, archive))
	if err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(release, "checksums.txt")
	maps.Copy(j.vars, map[string]string{
		"SSCLI_VERSION": "v1.2.3", "SSCLI_RELEASES": "file://" + j.dir + "/releases", "SSCLI_LOAD": seed + "\n",
		"SSCLI_REDIS": "127.0.0.1:0", "SSCLI_CONTROL": "127.0.0.1:0",
	})
	if err := os.WriteFile(sums, fmt.Appendf(nil, "%x  %s\n", sha256.Sum256([]byte("another")), archive), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := j.step("start"); err == nil || !strings.Contains(out, "does not have the checksum") {
		t.Fatalf("a wrong checksum: %v, %s", err, out)
	}
	if err := os.WriteFile(sums, fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(content), archive), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := j.step("start")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env, output := j.wrote("GITHUB_ENV"), j.wrote("GITHUB_OUTPUT")
	if env["SSCLI_URL"] == "" || env["SSCLI_URL"] != output["url"] || env["REDIS_URL"] != output["redis-url"] || env["SSCLI_CONTROL_URL"] != output["control-url"] ||
		"mqtt://"+env["AIO_BROKER_HOSTNAME"]+":"+env["AIO_BROKER_TCP_PORT"] != env["SSCLI_URL"] {
		t.Errorf("variables %q, outputs %q", env, output)
	}
	later := exec.Command(filepath.Join(j.dir, "sscli", "bin", "sscli"), "get", "setpoint")
	later.Env, later.Stderr = append(os.Environ(), "SSCLI_URL="+env["SSCLI_URL"]), t.Output()
	if got, err := later.Output(); err != nil || string(got) != "21.5" {
		t.Errorf("get in a later step: %q, %v", got, err)
	}
	out, err = j.step("log")
	if err != nil || !strings.Contains(out, "get setpoint → 4 bytes") {
		t.Errorf("the log: %v, %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(j.dir, "sscli", "pids")); err == nil {
		t.Error("the server was not ended")
	}
}

// TestActionFails: a server that does not start fails the step, with its log.
func TestActionFails(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	j.vars["PATH"] = filepath.Dir(build(t)) + ":" + os.Getenv("PATH")
	j.vars["SSCLI_LOAD"] = "nothing"
	if out, err := j.step("start"); err == nil || !strings.Contains(out, "nothing: no such file") || !strings.Contains(out, "sscli serve ended") {
		t.Errorf("%v, %s", err, out)
	}
	if out, err := j.step("frob"); err == nil || !strings.Contains(out, "expected start or log") {
		t.Errorf("%v, %s", err, out)
	}
}

// TestActionLogin: a later step has the CA and the token of a server with the login of a cluster, and rules apply. Rules
// without a login, which would allow everything, are refused.
func TestActionLogin(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	j.vars["PATH"] = filepath.Dir(build(t)) + ":" + os.Getenv("PATH")
	j.vars["SSCLI_POLICY"] = "../testcontainers/testdata/policy.yaml"
	if out, err := j.step("start"); err == nil || !strings.Contains(out, "policy without users") {
		t.Errorf("rules without a login: %v, %s", err, out)
	}
	maps.Copy(j.vars, map[string]string{"SSCLI_TLS": "true", "SSCLI_SAT_AUDIENCE": "aio-internal"})
	if out, err := j.step("start"); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	env := j.wrote("GITHUB_ENV")
	if env["AIO_MQTT_USE_TLS"] != "true" || !strings.HasPrefix(env["SSCLI_URL"], "mqtts://") {
		t.Errorf("%q", env)
	}
	for login, want := range map[string]string{"AIO_": "not authorized", "": "CONNACK 0x86"} {
		later := exec.Command(filepath.Join(filepath.Dir(build(t)), "sscli"), "get", "setpoint")
		later.Env = append(os.Environ(), "AIO_TLS_CA_FILE="+env["AIO_TLS_CA_FILE"])
		for name, value := range env {
			if login != "" && strings.HasPrefix(name, login) || name == "SSCLI_URL" {
				later.Env = append(later.Env, name+"="+value)
			}
		}
		if out, err := later.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("with %q: %v, %s, want %s", login, err, out, want)
		}
	}
	if out, err := j.step("log"); err != nil {
		t.Errorf("%v, %s", err, out)
	}
}

// TestActionTwice: a second start cannot have the address of a server that runs, but another one, and the last step ends
// all servers.
func TestActionTwice(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	j.vars["PATH"] = filepath.Dir(build(t)) + ":" + os.Getenv("PATH")
	start := func() string {
		t.Helper()
		if out, err := j.step("start"); err != nil {
			t.Fatalf("%v, %s", err, out)
		}
		return strings.TrimPrefix(j.wrote("GITHUB_OUTPUT")["url"], "mqtt://")
	}
	first := start()
	second := start()
	j.vars["SSCLI_LISTEN"] = first
	if out, err := j.step("start"); err == nil || !strings.Contains(out, "address already in use") || !strings.Contains(out, "sscli serve ended") {
		t.Errorf("the same address: %v, %s", err, out)
	}
	for _, address := range []string{first, second} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	if out, err := j.step("log"); err != nil || !strings.Contains(out, "address already in use") {
		t.Errorf("%v, %s", err, out)
	}
	for _, address := range []string{first, second} {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			t.Errorf("the server on %s was not ended", address)
		}
	}
}

// TestActionInputs: each input of the action reaches the script.
func TestActionInputs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../scripts/action.sh")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]any
		Runs   struct {
			Using string
			Steps []struct{ Env map[string]string }
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	if action.Runs.Using != "composite" || len(action.Runs.Steps) != 1 || len(action.Inputs) != len(action.Runs.Steps[0].Env) {
		t.Fatalf("%+v", action)
	}
	for name, value := range action.Runs.Steps[0].Env {
		input := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "SSCLI_")), "_", "-")
		if action.Inputs[input] == nil || value != "${{ inputs."+input+" }}" || input != "do" && !strings.Contains(string(script), "${"+name) && !strings.Contains(string(script), "$"+name) {
			t.Errorf("%s: %s, which the script does not read, or there is no input", name, value)
		}
	}
}
