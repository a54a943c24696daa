// Package examples runs the scripts of its directory and scripts/sscli.bash as a user would: with the real
// binary, against sscli serve.
package examples

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"

	"github.com/sscli/sscli/internal/testkit/full"
)

// TestExamples runs each script in testdata/script. The PATH of a script has sscli, built from this tree;
// $EXAMPLES is this directory, and $SSCLI_BASH is the library.
func TestExamples(t *testing.T) {
	if runtime.GOOS == "windows" {
		full.Missing(t, "no bash")
	}
	full.Program(t, "bash")
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(build(t))
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("EXAMPLES", here)
			env.Setenv("SSCLI_BASH", filepath.Join(here, "..", "scripts", "sscli.bash"))
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if condition != "python-redis" {
				return false, fmt.Errorf("unknown condition %q", condition)
			}
			err := exec.Command("/usr/bin/python3", "-c", "import redis.client").Run()
			if err != nil && full.Check() {
				return false, errors.New("python3-redis is not installed")
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"container": container,
		},
	})
}

// build builds sscli from this tree and returns its path.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	sscli := filepath.Join(t.TempDir(), "sscli")
	if runtime.GOOS == "windows" {
		sscli += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", sscli, "../cmd/sscli").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return sscli
}

// TestEachIsRun fails if an example has no test.
func TestEachIsRun(t *testing.T) {
	for _, pattern := range []string{"*.sh", "*.ps1", "*.yaml", "*.py"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			t.Errorf("no %s", pattern)
		}
		for _, name := range names {
			script := filepath.Join("testdata", "script", strings.TrimSuffix(name, filepath.Ext(name))+".txtar")
			text, err := os.ReadFile(script)
			if err != nil {
				t.Errorf("%s is not run: %v", name, err)
			} else if !strings.Contains(string(text), name) {
				t.Errorf("%s does not run %s", script, name)
			}
		}
	}
}

// A podSpec has the fields of a pod that these tests check.
type podSpec struct {
	ServiceAccountName           string `yaml:"serviceAccountName"`
	AutomountServiceAccountToken *bool  `yaml:"automountServiceAccountToken"`

	InitContainers []containerSpec `yaml:"initContainers"`
	Containers     []containerSpec
	Volumes        []map[string]any
}

type containerSpec struct {
	Name, Image     string
	Command, Args   []string
	SecurityContext map[string]any `yaml:"securityContext"`
	Env             []map[string]any
	VolumeMounts    []map[string]any `yaml:"volumeMounts"`
}

// parsePod returns the pod in a manifest of a Pod, or the pod template of a Deployment, a Job or a CronJob.
func parsePod(text []byte) (podSpec, error) {
	type template struct{ Spec podSpec }
	var manifest struct {
		Spec struct {
			Pod         podSpec `yaml:",inline"`
			Template    template
			JobTemplate struct{ Spec struct{ Template template } } `yaml:"jobTemplate"` // of a CronJob
		}
	}
	err := yaml.Unmarshal(text, &manifest)
	for _, pod := range []podSpec{manifest.Spec.Pod, manifest.Spec.Template.Spec, manifest.Spec.JobTemplate.Spec.Template.Spec} {
		if len(pod.Containers) > 0 {
			return pod, err
		}
	}
	return podSpec{}, errors.Join(err, errors.New("the manifest has no container"))
}

// documentedPod returns the pod in docs/connecting.md.
func documentedPod() (podSpec, error) {
	page, err := os.ReadFile("../docs/connecting.md")
	if err != nil {
		return podSpec{}, err
	}
	_, text, _ := strings.Cut(string(page), "```yaml\napiVersion: v1\nkind: Pod\n")
	text, _, _ = strings.Cut(text, "```")
	return parsePod([]byte(text))
}

// check returns an error unless a container works with our image.
func (c containerSpec) check() error {
	release, err := os.ReadFile("../.goreleaser.yaml")
	if err != nil {
		return err
	}
	var r struct {
		Dockers []struct{ Images []string } `yaml:"dockers_v2"`
	}
	if err := yaml.Unmarshal(release, &r); err != nil {
		return err
	}
	image, _, _ := strings.Cut(c.Image, ":")
	if len(r.Dockers) != 1 || !slices.Contains(r.Dockers[0].Images, image) {
		return fmt.Errorf("%s: image %s is not one of the released %v", c.Name, image, r.Dockers)
	}
	if c.Command != nil || c.SecurityContext["runAsNonRoot"] != true || c.SecurityContext["readOnlyRootFilesystem"] != true {
		return fmt.Errorf("%+v: want no command, runAsNonRoot and readOnlyRootFilesystem", c)
	}
	return nil
}

// TestPod checks the pod in docs/connecting.md.
func TestPod(t *testing.T) {
	pod, err := documentedPod()
	if err != nil {
		t.Fatal(err)
	}
	if err := pod.Containers[0].check(); err != nil {
		t.Error(err)
	}
}

// TestConnections: each manifest connects to the broker like the pod of `sscli pod`, with the same image,
// service-account token, CA, variables and rights.
func TestConnections(t *testing.T) {
	cmd := exec.Command(build(t), "pod")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := parsePod(out)
	if err != nil {
		t.Fatal(err)
	}
	documented, err := documentedPod()
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]podSpec{"docs/connecting.md": documented}
	names, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if pods[name], err = parsePod(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, pod := range pods {
		t.Run(name, func(t *testing.T) { pod.comparePod(t, want) })
	}
}

// comparePod checks that the pod's containers that run sscli connect like the container of want. A pod may
// have more volumes, and containers that run other programs.
func (p podSpec) comparePod(t *testing.T, want podSpec) {
	t.Helper()
	if p.ServiceAccountName != want.ServiceAccountName {
		t.Errorf("service account %q, want %q", p.ServiceAccountName, want.ServiceAccountName)
	}
	containsEach(t, "volume", p.Volumes, want.Volumes)
	all, ours := slices.Concat(p.InitContainers, p.Containers), 0
	for _, c := range all {
		model := want.Containers[0]
		if c.Image != model.Image {
			continue
		}
		ours++
		if !reflect.DeepEqual(c.SecurityContext, model.SecurityContext) {
			t.Errorf("%s: security context %v, want %v", c.Name, c.SecurityContext, model.SecurityContext)
		}
		if !reflect.DeepEqual(c.Env, model.Env) {
			t.Errorf("%s: environment %v, want %v", c.Name, c.Env, model.Env)
		}
		containsEach(t, c.Name+": volume mount", c.VolumeMounts, model.VolumeMounts)
	}
	if ours == 0 {
		t.Errorf("no container has the image %s", want.Containers[0].Image)
	}
	// A container that runs another program may need the token that Kubernetes mounts.
	if ours == len(all) && !reflect.DeepEqual(p.AutomountServiceAccountToken, want.AutomountServiceAccountToken) {
		t.Error("automountServiceAccountToken is not as in the pod of sscli pod")
	}
}

func containsEach(t *testing.T, what string, got, want []map[string]any) {
	t.Helper()
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g map[string]any) bool { return reflect.DeepEqual(g, w) }) {
			t.Errorf("no %s %v", what, w)
		}
	}
}

// container MANIFEST NAME FILE writes the command line of a manifest's container to FILE as a shell script.
func container(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: container MANIFEST NAME FILE")
	}
	pod, err := parsePod([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if c.Name != args[1] {
			continue
		}
		ts.Check(c.check())
		words := slices.Clone(c.Args)
		for i, w := range words {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte("exec sscli "+strings.Join(words, " ")+"\n"), 0o666))
		return
	}
	ts.Fatalf("%s has no container %s", args[0], args[1])
}
