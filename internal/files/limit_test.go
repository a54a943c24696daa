package files

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestLimit: what has at most the maximum of bytes is read whole. A larger file is refused before memory is taken for
// it, and a larger stream after the maximum.
func TestLimit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, tt := range []struct {
		size    int64
		refused bool
	}{{0, false}, {1, false}, {1 << 20, false}, {1<<20 + 1, true}, {1 << 30, true}} {
		if err := f.Truncate(tt.size); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := ReadFile(name, 1<<20)
		runtime.ReadMemStats(&after)
		wrong, isSize := errors.AsType[*SizeError](err)
		if isSize != tt.refused || !tt.refused && (err != nil || int64(len(got)) != tt.size) {
			t.Errorf("a file of %d: %d bytes, %v", tt.size, len(got), err)
		}
		if path, ok := errors.AsType[*fs.PathError](err); tt.refused && (!ok || path.Path != name || wrong.Error() != "larger than 1 MiB, the maximum") {
			t.Errorf("a file of %d: %v", tt.size, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; tt.refused && took > 1<<16 {
			t.Errorf("%d bytes were allocated to refuse a file of %d", took, tt.size)
		}
	}
	for size := range 5 {
		text := strings.Repeat("x", size)
		got, err := ReadAll(io.MultiReader(strings.NewReader(text), bytes.NewReader(nil)), 3)
		if _, refused := errors.AsType[*SizeError](err); refused != (size > 3) || string(got) != text[:min(size, 3)] {
			t.Errorf("a stream of %d: %q, %v", size, got, err)
		}
	}
}
