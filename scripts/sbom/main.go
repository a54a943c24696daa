// Command sbom writes the software bill of materials of a Go program, as CycloneDX 1.6 in
// JSON: the modules that the linker recorded in the program.
//
//	sbom PROGRAM DOCUMENT VERSION
//
// The document is reproducible: it has neither a time nor a random serial number.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "sbom: want PROGRAM, DOCUMENT and VERSION")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(program, document, version string) error {
	b, err := read(program, version)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(document, append(text, '\n'), 0o666)
}

// A bom is a document as specified at cyclonedx.org/docs/1.6/json.
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Purl       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func read(program, version string) (bom, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return bom{}, err
	}
	file, err := os.Open(program)
	if err != nil {
		return bom{}, err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return bom{}, err
	}
	main := component{
		Type: "application", Ref: purl(own, "v"+version), Name: info.Path, Version: version, Purl: purl(own, "v"+version),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum.Sum(nil))}},
	}
	for _, s := range info.Settings {
		if s.Value != "" {
			main.Properties = append(main.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	parts := []component{{
		Type: "library", Ref: purl("std", goVersion), Name: "std", Version: goVersion, Purl: purl("std", goVersion),
	}}
	for _, m := range info.Deps {
		parts = append(parts, module(m))
	}
	if err := main.licensed(own); err != nil {
		return bom{}, err
	}
	for i := range parts {
		if err := parts[i].licensed(parts[i].Name); err != nil {
			return bom{}, err
		}
	}
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{main}, Components: parts,
	}
	all := dependency{Ref: main.Ref}
	for _, p := range parts {
		all.DependsOn = append(all.DependsOn, p.Ref)
	}
	// The program does not record the dependencies between modules.
	b.Dependencies = []dependency{all}
	return b, nil
}

func module(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version, Purl: purl(m.Path, m.Version)}
	c.Ref = c.Purl
	if m.Sum != "" {
		// CycloneDX has no algorithm for this hash of the module's tree (golang.org/x/mod/sumdb/dirhash), so
		// it is a property.
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

// purl returns a package URL of type golang. A plus sign in the version is escaped.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
}
