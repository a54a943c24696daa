// Package sscli_test checks what holds for the module as a whole.
package sscli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sscli/sscli"

// A goPackage is what the Go command knows of a package of this module.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string // and those of Imports, and so on

	TestImports, XTestImports []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,TestImports,XTestImports", "./...")
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v: %s", err, e.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	var pkgs []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// under tells whether a package is one of trees or below one.
func under(path string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") })
}

func isStd(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// TestLayers holds the packages to the arrows that they were designed with.
func TestLayers(t *testing.T) {
	const (
		cmd      = module + "/cmd/sscli"
		client   = module + "/client"
		wire     = module + "/client/wire"
		mqtt     = module + "/client/mqtt"
		emulator = module + "/emulator"
		store    = module + "/emulator/store"
		format   = module + "/format"
		repl     = module + "/repl"
		btree    = "github.com/tidwall/btree"
		cobra    = "github.com/spf13/cobra"
		pflag    = "github.com/spf13/pflag"
		color    = "github.com/fatih/color"
		paho     = "github.com/eclipse/paho.golang"
		readline = "github.com/chzyer/readline"
	)
	own := func(path string) bool { return under(path, module) }
	// What is measured may stand beside other clients.
	ships := func(path string) bool { return own(path) && !under(path, module+"/scripts/bench") }
	flags := func(path string) bool { return under(path, cobra, pflag) }
	direct := func(p goPackage) []string { return p.Imports }
	all := func(p goPackage) []string { return p.Deps }
	tests := func(p goPackage) []string { return slices.Concat(p.Imports, p.TestImports, p.XTestImports) }
	rules := []struct {
		what     string
		applies  func(path string) bool
		imports  func(goPackage) []string
		mayNotBe func(path string) bool
	}{
		{"wire stands on the standard library alone", func(p string) bool { return p == wire }, all,
			func(i string) bool { return !isStd(i) }},
		{"mqtt knows no store", func(p string) bool { return p == mqtt }, all,
			func(i string) bool { return own(i) || flags(i) }},
		{"of paho only the packets", ships, tests,
			func(i string) bool { return under(i, paho) && i != paho+"/packets" }},
		{"paho's packets are mqtt's", func(p string) bool { return ships(p) && p != mqtt }, direct,
			func(i string) bool { return under(i, paho) }},
		{"client knows no user", func(p string) bool { return p == client }, all,
			func(i string) bool { return under(i, emulator, format, repl, cmd) || flags(i) }},
		{"emulator and client agree on bytes only", func(p string) bool { return under(p, emulator) }, all,
			func(i string) bool { return i == client || under(i, format, repl, cmd) || flags(i) }},
		{"store stands on the standard library, wire and btree", func(p string) bool { return p == store }, direct,
			func(i string) bool { return !isStd(i) && i != wire && i != btree }},
		{"store knows no network", func(p string) bool { return p == store }, all,
			func(i string) bool { return under(i, "net") }},
		{"format stands on the standard library and color", func(p string) bool { return p == format }, direct,
			func(i string) bool { return !isStd(i) && i != color }},
		{"repl stands on the standard library, format and readline", func(p string) bool { return p == repl }, direct,
			func(i string) bool { return !isStd(i) && i != format && i != readline }},
		{"readline is repl's", func(p string) bool { return own(p) && p != repl }, direct,
			func(i string) bool { return i == readline }},
		{"only the command knows flags", func(p string) bool { return own(p) && !under(p, cmd) }, all, flags},
		{"config knows flags and nothing of ours", func(p string) bool { return p == cmd+"/config" }, all,
			func(i string) bool { return own(i) || under(i, cobra) }},
		{"child knows nothing of ours", func(p string) bool { return p == cmd+"/child" }, all,
			func(i string) bool { return own(i) || flags(i) }},
	}
	pkgs := packages(t)
	for _, r := range rules {
		found := false
		for _, p := range pkgs {
			if !r.applies(p.ImportPath) {
				continue
			}
			found = true
			for _, i := range r.imports(p) {
				if r.mayNotBe(i) {
					t.Errorf("%s: %s imports %s", r.what, p.ImportPath, i)
				}
			}
		}
		if !found {
			t.Errorf("%s: no such package", r.what)
		}
	}
}
