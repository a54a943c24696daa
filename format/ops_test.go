package format

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// resultTypes returns the names of this package's result types.
func resultTypes(t *testing.T) (names []string) {
	t.Helper()
	const path = "github.com/sscli/sscli/format"
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("cannot read the package's types: ", err)
	}
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string) // the files with types of a package, by its path
	for line := range strings.Lines(string(out)) {
		of, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[of] = file
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	pkg, err := importer.ForCompiler(token.NewFileSet(), "gc", open).Import(path)
	if err != nil {
		t.Fatal(err)
	}
	result := pkg.Scope().Lookup("Result").Type().Underlying().(*types.Interface)
	for _, name := range pkg.Scope().Names() {
		typ := pkg.Scope().Lookup(name).Type()
		if _, is := pkg.Scope().Lookup(name).(*types.TypeName); is && !types.IsInterface(typ) && types.Implements(typ, result) {
			names = append(names, name)
		}
	}
	return names
}

// An opKey distinguishes results with the same op: those for standard error, and the events of a watch, which
// have a time.
type opKey struct {
	name          string
	stderr, event bool
}

// TestOps compares Ops with the ops and fields of the samples, in both directions.
func TestOps(t *testing.T) {
	printed := make(map[opKey]map[string]bool) // by op, the fields in a sample
	given := make(map[string]map[string]bool)  // by type, whether a sample has the field
	for _, results := range samples() {
		for _, r := range results {
			typ := reflect.Indirect(reflect.ValueOf(r)).Type().Name()
			fields := collect(r)
			_, isEvent := r.(Event)
			_, stderr := r.(diagnostic)
			key := opKey{fields[0].value.(string), stderr, isEvent}
			if printed[key] == nil {
				printed[key] = make(map[string]bool)
			}
			if given[typ] == nil {
				given[typ] = make(map[string]bool)
			}
			for _, f := range fields[1:] {
				if _, known := objectParts(f.name); !known {
					if _, ok := f.value.(object); ok {
						t.Errorf("the field %s of the op %s is an object, but objectParts in ops.go does not know it: templates cannot name what is in it", f.name, key.name)
					}
				}
				given[typ][f.name] = given[typ][f.name] || f.value != nil
				if f.value != nil {
					printed[key][f.name] = true
				}
			}
		}
	}
	results := resultTypes(t)
	if len(results) < len(given) {
		t.Errorf("%d types are results, but there are samples of %d", len(results), len(given))
	}
	for _, typ := range results {
		if given[typ] == nil {
			t.Errorf("no sample of %s: add some to samples in format_test.go", typ)
		}
		for name, ok := range given[typ] {
			if !ok {
				t.Errorf("no sample of %s has the field %s: add one to samples in format_test.go", typ, name)
			}
		}
	}
	for _, op := range Ops() {
		key := opKey{op.Name, op.Stderr, strings.HasPrefix(op.By, "watch") && op.Name != "end" && op.Name != "ready"}
		documented := strings.Fields(op.Fields)
		for _, name := range documented {
			if !printed[key][name] {
				t.Errorf("Ops says that the op %s of %s has the field %s, but no sample prints it", op.Name, op.By, name)
			}
		}
		for name := range printed[key] {
			if !slices.Contains(documented, name) {
				t.Errorf("the op %s of %s has the field %s, which the row in Ops in ops.go does not: add it, then go test ./format -run TestJSONPage -update", op.Name, op.By, name)
			}
		}
		delete(printed, key)
	}
	for key := range printed {
		t.Errorf("the op %s has no row in Ops in ops.go: add one, then go test ./format -run TestJSONPage -update", key.name)
	}
}
