package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// TestWrite reads the test binary, which is a Go program itself.
func TestWrite(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(t.TempDir(), "a.json"), filepath.Join(t.TempDir(), "b.json")
	for _, name := range []string{first, second} {
		if err := write(program, name, "1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(second); err != nil || string(again) != string(text) {
		t.Errorf("the same program gave another document: %v", err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if c := b.Metadata.Component; b.Format != "CycloneDX" || c.Purl != "pkg:golang/github.com/sscli/sscli@v1.2.3" || c.Ref != c.Purl || c.Version != "1.2.3" {
		t.Errorf("format %q, about %+v", b.Format, c)
	}
	for _, c := range append(b.Components, b.Metadata.Component) {
		if len(c.Licenses) != 1 {
			t.Errorf("%s has licenses %+v, want one", c.Name, c.Licenses)
		}
	}
	if len(b.Components) == 0 || b.Components[0].Name != "std" || b.Components[0].Version == "" {
		t.Errorf("components begin with %+v, want the standard library", b.Components)
	}
	if len(b.Dependencies) != 1 || len(b.Dependencies[0].DependsOn) != len(b.Components) {
		t.Errorf("dependencies %+v of %d components", b.Dependencies, len(b.Components))
	}
	if err := write(first, second, "1.2.3"); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("not a program: got %v, want an error that names the file", err)
	}
}

func TestModule(t *testing.T) {
	m := &debug.Module{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{
		Path: "example.org/new/v2", Version: "v2.0.0+incompatible", Sum: "h1:abc",
	}}
	c := module(m)
	const want = "pkg:golang/example.org/new/v2@v2.0.0%2Bincompatible"
	if c.Purl != want || c.Ref != want || len(c.Properties) != 1 || c.Properties[0].Value != "h1:abc" {
		t.Errorf("got %+v, want %s and its sum", c, want)
	}
}
