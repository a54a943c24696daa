// Package memtest compares the memory that a server charges for its objects with the memory that they take.
//
// A test of a package that charges memory has two parts. [Fields] fails when a type has a field of variable size
// that nobody has said how it is charged. [Compare] makes many objects of a kind, at their largest, and
// compares their charge with the heap, in a process that [Alone] starts.
package memtest

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"
)

// Heap returns the bytes of all live objects.
func Heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what the first collection found in pools
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// slack is the memory that all objects of a test may be charged too much, in bytes: for a fixed part that they
// share, such as the first page of a map.
const slack = 64 << 10

// alone is set, in the process that [Alone] starts, to the name of the test that runs there.
const alone = "SSCLI_TEST_ALONE"

// Alone reports whether the test runs in a process of its own. If not, it starts one that runs just this test, and
// its result is the test's; the caller then returns. In a shared process, memory of earlier tests, such as that of a
// server which was stopped a moment ago, may be freed during a comparison.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(alone) == t.Name() {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), alone+"="+t.Name())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" (")) {
		t.Errorf("in a process of its own: %v", err)
	}
	return false
}

// Compare calls create for 0 to number-1, and fails the test unless charged grows by the memory of what create
// has made, within a quarter. The test must run in a process of its own; see [Alone].
func Compare(t *testing.T, number int, charged func() int, create func(i int)) {
	t.Helper()
	if os.Getenv(alone) == "" {
		t.Fatal("Compare is called outside Alone")
	}
	memory, cost := Heap(), charged()
	for i := range number {
		create(i)
	}
	memory, cost = Heap()-memory, charged()-cost
	t.Logf("cost %d, memory %d bytes each", cost/number, memory/number)
	if cost < memory*3/4 || cost > memory*5/4+slack {
		t.Errorf("%d bytes are charged for each of %d, %d are in use", cost/number, number, memory/number)
	}
}

// Fields fails the test unless known names each field of variable size of these struct types, as type.field, and
// says how its memory is charged or bounded. So a new field cannot be forgotten.
func Fields(t *testing.T, known map[string]string, types ...reflect.Type) {
	t.Helper()
	left := maps.Clone(known)
	for _, typ := range types {
		for field := range typ.Fields() {
			name := typ.Name() + "." + field.Name
			if isFixed(field.Type) {
				continue
			}
			if known[name] == "" {
				t.Errorf("%s %v: how is its memory charged? Charge it, compare it with the heap, and say here where", name, field.Type)
			}
			delete(left, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("%s: no such field of variable size", name)
	}
}

// isFixed reports whether a value of a type takes no memory besides the value itself.
func isFixed(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64:
		return true
	case reflect.Array:
		return isFixed(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() || t.PkgPath() == "sync" {
			return true
		}
		for field := range t.Fields() {
			if !isFixed(field.Type) {
				return false
			}
		}
		return true
	}
	return false
}
