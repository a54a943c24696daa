package sscli_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"

	sscli "github.com/sscli/sscli/testcontainers"
)

// What the tests share, or why they are skipped.
var (
	image   = fmt.Sprintf("localhost/sscli:test-%d", os.Getpid())
	program string // sscli for this machine, the same as in the image
	missing error
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sscli")
	if err != nil {
		panic(err)
	}
	end, err := prepare(dir)
	missing = err
	code := m.Run()
	end()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// prepare builds the image of this checkout, with files in dir, and starts the service of podman, which Testcontainers
// connects to as to a Docker daemon.
func prepare(dir string) (end func(), err error) {
	end = func() {}
	if _, err := exec.LookPath("podman"); err != nil || runtime.GOOS != "linux" {
		return end, cmp.Or(err, errors.New("not Linux"))
	}
	program = filepath.Join(dir, "linux", "sscli")
	run := func(name string, args ...string) error {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", cmd, err, out)
		}
		return nil
	}
	if err := errors.Join(
		run("go", "build", "-C", "..", "-buildvcs=false", "-o", program, "./cmd/sscli"),
		// As in scripts/release-files.sh.
		os.MkdirAll(filepath.Join(dir, "build", "image", "bin"), 0o755),
		os.Mkdir(filepath.Join(dir, "build", "image", "data"), 0o755),
		os.Symlink("sscli", filepath.Join(dir, "build", "image", "bin", "statestore-cli")),
		os.WriteFile(filepath.Join(dir, "build", "THIRD-PARTY-LICENSES"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "LICENSE"), nil, 0o600),
	); err != nil {
		panic(err)
	}
	// Docker's format of an image has the health check.
	if err := run("podman", "build", "--format=docker", "--layers=false", "--build-arg=TARGETPLATFORM=linux", "--file=../Dockerfile", "--tag="+image, dir); err != nil {
		return end, err
	}
	remove := func() { _ = run("podman", "rmi", "--force", image) }
	// Not every machine that has podman can run containers.
	if err := run("podman", "run", "--rm", image, "version"); err != nil {
		return remove, err
	}
	// The service gets a socket that listens already, as from systemd.
	socket := filepath.Join(dir, "podman.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return remove, err
	}
	defer func() { _ = ln.Close() }()
	ln.SetUnlinkOnClose(false)
	inherited, err := ln.File()
	if err != nil {
		return remove, err
	}
	defer func() { _ = inherited.Close() }()
	service := exec.Command("sh", "-c", "LISTEN_PID=$$ exec podman system service --time=0")
	service.Env = append(os.Environ(), "LISTEN_FDS=1")
	service.ExtraFiles = []*os.File{inherited}
	if err := service.Start(); err != nil {
		return remove, err
	}
	end = func() {
		_ = service.Process.Kill()
		_ = service.Wait()
		remove()
	}
	return end, errors.Join(
		os.Setenv("DOCKER_HOST", "unix://"+socket),
		os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"), // which is an image that podman would have to pull
	)
}

// run starts a container, which ends with the test.
func run(t *testing.T, opts ...testcontainers.ContainerCustomizer) (*sscli.Container, error) {
	t.Helper()
	if missing != nil {
		t.Skipf("requires podman and containers that run: %v", missing)
	}
	store, err := sscli.Run(t.Context(), image, opts...)
	testcontainers.CleanupContainer(t, store)
	return store, err
}

func mustRun(t *testing.T, opts ...testcontainers.ContainerCustomizer) *sscli.Container {
	t.Helper()
	store, err := run(t, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// client runs sscli on this machine with the environment of the container, as a test runs its application, and
// returns what it prints and its exit code.
func client(t *testing.T, store *sscli.Container, args ...string) (string, int) {
	t.Helper()
	env, err := store.Env(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func expect(t *testing.T, store *sscli.Container, want string, args ...string) {
	t.Helper()
	if got, code := client(t, store, args...); code != 0 || got != want {
		t.Errorf("%q: exit code %d, %q, expected %q", args, code, got, want)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	store := mustRun(t, sscli.WithLoad("testdata/keys", filepath.Join("testdata", "more.jsonl")), sscli.WithRedis(), sscli.WithControl())
	expect(t, store, "21.5", "get", "setpoint")
	expect(t, store, "x", "get", "more")

	url, err := store.URL(t.Context())
	if err != nil || !strings.HasPrefix(url, "mqtt://") {
		t.Errorf("%q, %v", url, err)
	}
	env, err := store.Env(t.Context())
	if err != nil || env["SSCLI_URL"] != url || url != "mqtt://"+env["AIO_BROKER_HOSTNAME"]+":"+env["AIO_BROKER_TCP_PORT"] {
		t.Errorf("%q, %v", env, err)
	}

	url, err = store.RedisURL(t.Context())
	if err != nil || env["REDIS_URL"] != url {
		t.Fatalf("%q, %v", url, err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET setpoint\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "$4\r\n" {
		t.Errorf("GET of a Redis client: %q, %v", line, err)
	}

	url, err = store.ControlURL(t.Context())
	if err != nil || env["SSCLI_CONTROL_URL"] != url {
		t.Fatalf("%q, %v", url, err)
	}
	if out, code := client(t, store, "set", "lease", "me", "--ttl", "1h"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	reply, err := http.Post(url+"/fast-forward", "application/json", strings.NewReader(`{"by": "2h"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	if out, code := client(t, store, "get", "lease"); code != 1 || reply.StatusCode != http.StatusOK {
		t.Errorf("a lease of 1h after 2h: %s, exit code %d, %s", reply.Status, code, out)
	}
}

// TestLoadLink: a source that is a link stands for what it leads to.
func TestLoadLink(t *testing.T) {
	t.Parallel()
	keys, err := filepath.Abs("testdata/keys")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(keys, link); err != nil {
		t.Fatal(err)
	}
	expect(t, mustRun(t, sscli.WithLoad(link)), "21.5", "get", "setpoint")
}

// TestDefaults: without options, there is only the broker.
func TestDefaults(t *testing.T) {
	t.Parallel()
	store := mustRun(t)
	if out, code := client(t, store, "get", "setpoint"); code != 1 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, err := store.RedisURL(t.Context()); err == nil {
		t.Error("there is an URL for Redis clients")
	}
	if _, err := store.ControlURL(t.Context()); err == nil {
		t.Error("there is an URL of a control port")
	}
}

// TestPolicy: who logs in may do what the rules allow.
func TestPolicy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users, password := filepath.Join(dir, "users"), filepath.Join(dir, "password")
	if err := errors.Join(os.WriteFile(users, []byte("ann:secret\n"), 0o600), os.WriteFile(password, []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	store := mustRun(t, sscli.WithUsers(users), sscli.WithPolicy("testdata/policy.yaml"), sscli.WithLoad("testdata/keys"))
	if out, code := client(t, store, "get", "setpoint"); code != 4 {
		t.Errorf("without a login: exit code %d: %s", code, out)
	}
	login := []string{"--username", "ann", "--password-file", password}
	expect(t, store, "21.5", append(login, "get", "setpoint")...)
	if out, code := client(t, store, append(login, "set", "setpoint", "1")...); code != 4 {
		t.Errorf("set without the right to: exit code %d: %s", code, out)
	}
}

// TestLogin: the login of a cluster: TLS and a service-account token, beside users and the control port.
func TestLogin(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("ann:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := mustRun(t, sscli.WithTLS(), sscli.WithSAT("aio-internal"), sscli.WithUsers(users), sscli.WithControl(), sscli.WithRedis(), sscli.WithLoad("testdata/keys"))
	expect(t, store, "21.5", "get", "setpoint")
	env, err := store.Env(t.Context())
	if err != nil || env["AIO_MQTT_USE_TLS"] != "true" || env["AIO_TLS_CA_FILE"] != store.CAFile() || env["AIO_SAT_FILE"] != store.SATFile() ||
		!strings.HasPrefix(env["SSCLI_URL"], "mqtts://") || !strings.HasPrefix(env["REDIS_URL"], "rediss://") {
		t.Errorf("%q, %v", env, err)
	}
	if out, code := client(t, store, "set", "lease", "me", "--ttl", "1h"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	reply, err := http.Post(env["SSCLI_CONTROL_URL"]+"/expire", "application/json", strings.NewReader(`{"by": "2h"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	if out, code := client(t, store, "get", "lease"); code != 1 || reply.StatusCode != http.StatusOK {
		t.Errorf("a lease of 1h after 2h: %s, exit code %d, %s", reply.Status, code, out)
	}
	file := store.SATFile()
	if err := store.Terminate(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the token is left on this machine")
	}
}

// TestStores: tests that run in parallel have a store each in one container.
func TestStores(t *testing.T) {
	t.Parallel()
	container := mustRun(t, sscli.WithStores(2), sscli.WithLoad("testdata/keys"))
	for _, name := range []string{"a", "b"} {
		store, err := container.NewStore(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range [][]string{{"get", "setpoint"}, {"set", "only", name, "--nx"}} { // with NX, a store that another test has used fails
			if out, code := client(t, container, append(step, "-u", store.URL)...); code != 0 {
				t.Errorf("%s: %q: exit code %d: %s", name, step, code, out)
			}
		}
		reply, err := http.Post(store.ControlURL+"/reset", "application/json", strings.NewReader("{}"))
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", reply, err)
		}
		_ = reply.Body.Close()
		if out, code := client(t, container, "get", "only", "-u", store.URL); code != 1 {
			t.Errorf("%s after a reset: exit code %d: %s", name, code, out)
		}
	}
	if _, err := container.NewStore(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "WithStores") {
		t.Errorf("a third store: %v", err)
	}
}

// TestData: a volume keeps the store when its container is stopped and started, and for the next container.
func TestData(t *testing.T) {
	t.Parallel()
	volume := fmt.Sprintf("sscli-test-%d", os.Getpid())
	store := mustRun(t, sscli.WithData(volume))
	for n := range 20 {
		if out, code := client(t, store, "set", fmt.Sprint(n), "x", "-q"); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}
	timeout := time.Minute
	if err := errors.Join(store.Stop(t.Context(), &timeout), store.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	expect(t, store, "x", "get", "19")
	if err := testcontainers.TerminateContainer(store); err != nil {
		t.Fatal(err)
	}
	store = mustRun(t, sscli.WithData(volume))
	t.Cleanup(func() {
		if err := store.Terminate(context.Background(), testcontainers.RemoveVolumes(volume)); err != nil {
			t.Error(err)
		}
	})
	expect(t, store, "x", "get", "0")
	expect(t, store, "x", "get", "19")
}

// TestStatestoreCLI: the image also has the program under the name of Microsoft's tool.
func TestStatestoreCLI(t *testing.T) {
	t.Parallel()
	store := mustRun(t, sscli.WithLoad("testdata/keys"))
	code, out, err := store.Exec(t.Context(), []string{"statestore-cli", "-n", "127.0.0.1", "-p", "1883", "--notls", "get", "-k", "setpoint"})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(out); code != 0 || !strings.HasSuffix(string(text), "21.5\n") {
		t.Errorf("exit code %d, %q, %v", code, text, err)
	}
}

// TestErrors: what cannot be served is an error, at once.
func TestErrors(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("ann:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		opts []testcontainers.ContainerCustomizer
	}{
		{"nothing: no such file", []testcontainers.ContainerCustomizer{sscli.WithLoad("nothing")}},
		{"has no files", []testcontainers.ContainerCustomizer{sscli.WithLoad(t.TempDir())}},
		{"WithPolicy without WithUsers", []testcontainers.ContainerCustomizer{sscli.WithPolicy("testdata/policy.yaml")}},
		// podman may still call the container "stopped", without an exit code.
		{"wait until ready: ", []testcontainers.ContainerCustomizer{sscli.WithUsers(users), testcontainers.WithCmdArgs("--no-login")}},
	} {
		if _, err := run(t, c.opts...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
}
