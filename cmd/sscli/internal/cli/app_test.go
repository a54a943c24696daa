package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// TestAskPassKept: the lines of a run that has asked do not ask again.
func TestAskPassKept(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(fs)
	if err := fs.Parse([]string{"-u", "mqtt://127.0.0.1:1", "--username", "ann", "--askpass"}); err != nil {
		t.Fatal(err)
	}
	a := &App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: func(string) (string, bool) { return "", false }}
	a.password = []byte("secret")
	for range 2 {
		if err := a.ConfigureConnection(t.Context(), fs); err != nil {
			t.Fatal(err)
		}
	}
	if o, _, err := a.Broker(); err != nil || string(o.Password) != "secret" {
		t.Errorf("%q, %v", o.Password, err)
	}
}

// TestSmall holds that App does not become a place for everything.
func TestSmall(t *testing.T) {
	const most = 25
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var methods []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok && star.X.(*ast.Ident).Name == "App" {
				methods = append(methods, f.Name.Name)
			}
		}
	}
	if len(methods) == 0 || len(methods) > most {
		t.Errorf("App has %d methods, want 1 to %d: %q", len(methods), most, methods)
	}
}
