package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// steering is what only the emulator's own server can do, or what it starts in place of
// open.
var steering = []string{
	"Await", "await", "Changes", "Close", "DropAll", "FastForward", "Intercept", "Now", "RefuseConnect", "RefuseReauth", "State",
	"New", "Start", "TLS", "Users",
}

// TestOnBoth lists the tests of sessions that onBoth does not run, and why. One that
// steers nothing should be among those that are run on a Mosquitto too.
func TestOnBoth(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	both, left := 0, []string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if file.Name.Name != "client_test" {
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			used := make(map[string]bool)
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[id.Name] = true
				}
				return true
			})
			switch {
			case used["onBoth"]:
				both++
			case used["open"] || used["dial"]:
				why := slices.DeleteFunc(slices.Sorted(maps.Keys(used)), func(name string) bool { return !slices.Contains(steering, name) })
				if len(why) == 0 {
					t.Errorf("%s steers nothing: it can be run by onBoth", f.Name.Name)
				}
				left = append(left, f.Name.Name+" ("+strings.Join(why, ", ")+")")
			}
		}
	}
	t.Logf("%d tests are run with the emulator and on a Mosquitto; left to the emulator: %s", both, strings.Join(left, "; "))
	if both == 0 || len(left) == 0 {
		t.Error("no test was found")
	}
}
