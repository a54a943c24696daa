package examples

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/testkit/full"
)

// feature runs the script of the dev container feature, in a copy of its folder alone as a dev container has it, with
// these variables, and returns where it installs to and what it printed.
func feature(t *testing.T, vars ...string) (prefix, out string, err error) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("dev containers are Linux, and the release that the test makes is for amd64")
	}
	dir := filepath.Join(t.TempDir(), "feature")
	if err := os.CopyFS(dir, os.DirFS("../devcontainer/sscli")); err != nil {
		t.Fatal(err)
	}
	prefix = t.TempDir()
	cmd := exec.Command(filepath.Join(dir, "install.sh"))
	cmd.Env = append(os.Environ(), append([]string{"SSCLI_PREFIX=" + prefix, "RUNNER_OS=", "RUNNER_ARCH="}, vars...)...)
	text, err := cmd.CombinedOutput()
	return prefix, string(text), err
}

// checkInstalled runs the program that was installed, and looks for the completions.
func checkInstalled(t *testing.T, prefix string) {
	t.Helper()
	if out, err := exec.Command(filepath.Join(prefix, "bin", "sscli"), "--embedded", "set", "a", "1").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "OK") {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{"bash-completion/completions/sscli", "zsh/site-functions/_sscli", "fish/vendor_completions.d/sscli.fish"} {
		if text, err := os.ReadFile(filepath.Join(prefix, "share", name)); err != nil || len(text) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

// TestFeature: the feature installs a release whose checksum is right, by its number or as the latest, and nothing else.
func TestFeature(t *testing.T) {
	t.Parallel()
	sscli := build(t)
	const archive = "sscli_1.2.3_linux_amd64.tar.gz"
	releases := t.TempDir()
	release := filepath.Join(releases, "download", "v1.2.3")
	if err := os.MkdirAll(release, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-czf", filepath.Join(release, archive), "-C", filepath.Dir(sscli), "sscli").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(release, archive))
	if err != nil {
		t.Fatal(err)
	}
	checksums := func(of []byte) {
		t.Helper()
		text := fmt.Sprintf("%x  sscli_1.2.3_linux_arm64.tar.gz\n%x  %s\n", sha256.Sum256(nil), sha256.Sum256(of), archive)
		if err := os.WriteFile(filepath.Join(release, "checksums.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /download/", http.FileServer(http.Dir(releases)))
	mux.Handle("GET /latest/download/", http.RedirectHandler("/download/v1.2.3/checksums.txt", http.StatusFound))
	server := httptest.NewServer(mux)
	defer server.Close()
	at := "SSCLI_RELEASES=" + server.URL

	checksums([]byte("another"))
	if _, out, err := feature(t, at, "VERSION=1.2.3"); err == nil || !strings.Contains(out, "does not have the checksum") {
		t.Errorf("a wrong checksum: %v: %s", err, out)
	}
	checksums(content)
	for _, version := range []string{"1.2.3", "v1.2.3", "latest", ""} {
		prefix, out, err := feature(t, at, "VERSION="+version)
		if err != nil {
			t.Fatalf("version %q: %v: %s", version, err, out)
		}
		checkInstalled(t, prefix)
	}
	if _, out, err := feature(t, at, "VERSION=9.9.9"); err == nil || !strings.Contains(out, "cannot download") {
		t.Errorf("a missing release: %v: %s", err, out)
	}

	// Small images have either curl or wget.
	for _, client := range []string{"curl", "wget"} {
		t.Run(client, func(t *testing.T) {
			prefix, out, err := feature(t, at, "VERSION=latest", "PATH="+programs(t, "mktemp", "rm", "uname", "mkdir", "awk", "sed", "sha256sum", "cut", "tar", "gzip", "cp", "chmod", client))
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			checkInstalled(t, prefix)
		})
	}
	if _, out, err := feature(t, at, "VERSION=latest", "PATH="+programs(t, "mktemp", "rm", "uname", "mkdir")); err == nil || !strings.Contains(out, "expected curl or wget") {
		t.Errorf("without curl and wget: %v: %s", err, out)
	}
}

// programs returns a directory with links to dirname and these programs.
func programs(t *testing.T, names ...string) string {
	t.Helper()
	path := t.TempDir()
	for _, name := range append(names, "dirname") {
		full.Program(t, name)
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestFeatureProgram: the feature installs a program that is there, and needs no network.
func TestFeatureProgram(t *testing.T) {
	t.Parallel()
	prefix, out, err := feature(t, "PROGRAM="+build(t), "SSCLI_RELEASES=http://127.0.0.1:1")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkInstalled(t, prefix)
	if _, out, err := feature(t, "PROGRAM=nothing"); err == nil || !strings.Contains(out, "nothing: no such file") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestFeatureOptions: each option reaches the script, which reads no other variables.
func TestFeatureOptions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../devcontainer/sscli/devcontainer-feature.json")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../devcontainer/sscli/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		ID, Version string
		Options     map[string]struct{ Type, Default string }
	}
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	if described.ID != "sscli" || described.Version == "" || len(described.Options) != 2 {
		t.Errorf("%+v", described)
	}
	for name, option := range described.Options {
		if option.Type != "string" || !strings.Contains(string(script), "${"+strings.ToUpper(name)+"-}") && !strings.Contains(string(script), "${"+strings.ToUpper(name)+":-"+option.Default+"}") {
			t.Errorf("%s: %+v, which the script does not read", name, option)
		}
	}
}
