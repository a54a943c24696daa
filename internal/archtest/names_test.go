package archtest

import (
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNames: every type that a user of the libraries meets, as a field, an argument or a result, has a name in the
// library, by which it can be declared and looked up. go doc does not show the fields and methods of a type whose name is
// an alias for one of another package, so its comment says which it has.
func TestNames(t *testing.T) {
	libraries := []string{module + "/client", module + "/emulator"}
	out, err := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, libraries...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range libraries {
		comments, all := docs(t, strings.TrimPrefix(path, module+"/"))
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		n := &names{t: t, pkg: pkg, named: make(map[*types.TypeName]bool), seen: make(map[types.Type]bool)}
		for _, name := range pkg.Scope().Names() {
			if o, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() {
				if of, ok := types.Unalias(o.Type()).(*types.Named); ok {
					n.named[of.Obj()] = true
					for _, member := range members(of) {
						if o.IsAlias() && !strings.Contains(comments[name], "as in package client") && !regexp.MustCompile(`\b`+member+`\b`).MatchString(comments[name]+all) {
							t.Errorf("%s.%s: the comment does not name %s", path, name, member)
						}
					}
				}
			}
		}
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				n.walk(o.Type(), path+"."+name)
			}
		}
	}
}

// docs returns the comments of a package's types, and that of the package.
func docs(t *testing.T, dir string) (types map[string]string, all string) {
	t.Helper()
	fset, types := token.NewFileSet(), make(map[string]string)
	sources, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, module+"/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range p.Types {
		types[of.Name] = of.Doc
		for _, spec := range of.Decl.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == of.Name && s.Doc != nil {
				types[of.Name] = s.Doc.Text()
			}
		}
	}
	return types, p.Doc
}

// members returns the exported fields and methods of a type, without methods of the standard library's interfaces, such as Error.
func members(of *types.Named) (names []string) {
	for i := range of.NumMethods() {
		names = append(names, of.Method(i).Name())
	}
	if fields, ok := of.Underlying().(*types.Struct); ok {
		for i := range fields.NumFields() {
			names = append(names, fields.Field(i).Name())
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !token.IsExported(name) || slices.Contains([]string{"Error", "Unwrap", "Is", "MarshalJSON", "UnmarshalJSON"}, name)
	})
}

// names finds the types of a package's API that have no name there.
type names struct {
	t     *testing.T
	pkg   *types.Package
	named map[*types.TypeName]bool
	seen  map[types.Type]bool
}

func (n *names) walk(of types.Type, where string) {
	of = types.Unalias(of)
	if n.seen[of] {
		return
	}
	n.seen[of] = true
	switch of := of.(type) {
	case *types.Named:
		o := of.Origin().Obj()
		if o.Pkg() == nil || !under(o.Pkg().Path(), module) {
			return
		}
		if !n.named[o] {
			n.t.Errorf("%s: %s has no name in %s", where, o.Type(), n.pkg.Path())
			return
		}
		for i := range of.NumMethods() {
			if m := of.Method(i); m.Exported() {
				n.walk(m.Type(), where+"."+m.Name())
			}
		}
		n.walk(of.Underlying(), where)
	case *types.Struct:
		for i := range of.NumFields() {
			if f := of.Field(i); f.Exported() {
				n.walk(f.Type(), where+"."+f.Name())
			}
		}
	case *types.Interface:
		for i := range of.NumMethods() {
			if m := of.Method(i); m.Exported() {
				n.walk(m.Type(), where+"."+m.Name())
			}
		}
	case *types.Signature:
		n.walk(of.Params(), where)
		n.walk(of.Results(), where)
	case *types.Tuple:
		for i := range of.Len() {
			n.walk(of.At(i).Type(), where)
		}
	case *types.Map:
		n.walk(of.Key(), where)
		n.walk(of.Elem(), where)
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		n.walk(of.Elem(), where)
	}
}
