// Package examples runs the scripts of its directory and scripts/sscli.bash as their users
// would: with the real binary, against sscli serve.
package examples

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestExamples runs each script in testdata/script. They find sscli, built from this tree,
// on the PATH, this directory in $EXAMPLES, and the library in $SSCLI_BASH.
func TestExamples(t *testing.T) {
	if _, err := exec.LookPath("bash"); runtime.GOOS == "windows" || err != nil {
		if os.Getenv("SSCLI_CHECK") == "full" {
			t.Fatal("no bash")
		}
		t.Skip("no bash")
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "sscli"), "../cmd/sscli").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
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
			if err != nil && os.Getenv("SSCLI_CHECK") == "full" {
				return false, errors.New("python3-redis is not installed")
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"container": container,
		},
	})
}

// TestEachIsRun requires a test of each example.
func TestEachIsRun(t *testing.T) {
	for _, pattern := range []string{"*.sh", "*.yaml", "*.py"} {
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
	InitContainers []containerSpec `yaml:"initContainers"`
	Containers     []containerSpec
}

type containerSpec struct {
	Name, Image     string
	Command, Args   []string
	SecurityContext struct {
		RunAsNonRoot           bool `yaml:"runAsNonRoot"`
		ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
	} `yaml:"securityContext"`
}

// check reports whether a container works with our image.
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
	if c.Command != nil || !c.SecurityContext.RunAsNonRoot || !c.SecurityContext.ReadOnlyRootFilesystem {
		return fmt.Errorf("%+v: want no command, runAsNonRoot and readOnlyRootFilesystem", c)
	}
	return nil
}

// TestPod checks the pod in docs/connecting.md.
func TestPod(t *testing.T) {
	page, err := os.ReadFile("../docs/connecting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\napiVersion: v1\nkind: Pod\n")
	text, _, ok := strings.Cut(text, "```")
	var pod struct{ Spec podSpec }
	if err := yaml.Unmarshal([]byte(text), &pod); !ok || err != nil || len(pod.Spec.Containers) != 1 {
		t.Fatalf("docs/connecting.md: %d containers, %v", len(pod.Spec.Containers), err)
	}
	if err := pod.Spec.Containers[0].check(); err != nil {
		t.Error(err)
	}
}

// container MANIFEST NAME FILE writes the command line of a manifest's container to FILE, as a
// shell script.
func container(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: container MANIFEST NAME FILE")
	}
	type template struct{ Spec podSpec }
	var manifest struct {
		Spec struct {
			Template    template
			JobTemplate struct{ Spec struct{ Template template } } `yaml:"jobTemplate"` // of a CronJob
		}
	}
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[0])), &manifest))
	pod, ofJob := manifest.Spec.Template.Spec, manifest.Spec.JobTemplate.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers, ofJob.Containers) {
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
