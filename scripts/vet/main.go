// Command vet does what go vet does, with the tests, for other systems than this one:
//
//	vet windows/386 darwin/arm64
//
// It reads the types of all packages below from their source. go vet compiles these packages for each system first, which
// takes ten times as long.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, system := range os.Args[1:] {
		if err := check(".", system); err != nil {
			fmt.Fprintf(os.Stderr, "%s:\n%v\n", system, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check checks all packages of the module in a directory for a system, such as windows/386. Its error has a line for each
// finding.
func check(directory, system string) error {
	goos, goarch, _ := strings.Cut(system, "/")
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax | packages.NeedModule, Tests: true, Dir: directory,
		Env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return err
	}
	var errs []error
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		for _, err := range p.Errors {
			errs = append(errs, err)
		}
	})
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	found, err := checker.Analyze(vet.Suite, pkgs, nil)
	if err != nil {
		return err
	}
	for action := range found.All() {
		if action.IsRoot && action.Err != nil {
			return fmt.Errorf("%s of %s: %w", action.Analyzer, action.Package, action.Err)
		}
	}
	var text bytes.Buffer
	if err := found.PrintText(&text, -1); err != nil {
		return err
	}
	if text.Len() > 0 {
		return errors.New(strings.TrimSuffix(text.String(), "\n"))
	}
	return nil
}
