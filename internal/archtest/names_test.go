package archtest

import (
	"encoding/json"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestNames: every type that a user of the libraries meets, as a field, an argument or a result, has a name in the
// library, by which it can be declared and looked up.
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
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		n := &names{t: t, pkg: pkg, named: make(map[*types.TypeName]bool), seen: make(map[types.Type]bool)}
		for _, name := range pkg.Scope().Names() {
			if o, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() {
				if of, ok := types.Unalias(o.Type()).(*types.Named); ok {
					n.named[of.Obj()] = true
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
