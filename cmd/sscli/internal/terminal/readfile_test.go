package terminal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/files"
)

// TestReadAll: a large input arrives whole, from a file, from the rest of a file and from a pipe. It takes memory
// once from a file, and twice from a pipe.
func TestReadAll(t *testing.T) {
	want := strings.Repeat("0123456789abcdef\r\n", 1<<20)
	name := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	before := taken()
	if got, err := ReadFile(t.Context(), name); err != nil || got != want {
		t.Errorf("of a file, %d bytes, %v, want %d", len(got), err, len(want))
	}
	if took := taken() - before; took > uint64(len(want))*5/4 {
		t.Errorf("%d bytes were allocated to read %d of a file", took, len(want))
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(18, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAll(t.Context(), f, files.MaxValue); err != nil || got != want[18:] {
		t.Errorf("of the rest of a file, %d bytes, %v, want %d", len(got), err, len(want)-18)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = io.WriteString(w, want)
		_ = w.Close()
	}()
	before = taken()
	if got, err := ReadAll(t.Context(), r, files.MaxValue); err != nil || got != want {
		t.Errorf("of a pipe, %d bytes, %v, want %d", len(got), err, len(want))
	}
	if took := taken() - before; took > uint64(len(want))*5/2 {
		t.Errorf("%d bytes were allocated to read %d of a pipe", took, len(want))
	}
}

// TestReadFileTooLarge: a file that is larger than a value can be is refused before memory is taken for it.
func TestReadFileTooLarge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(files.MaxValue+1), f.Close()); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = ReadFile(t.Context(), name)
	runtime.ReadMemStats(&after)
	if _, ok := errors.AsType[*files.SizeError](err); !ok {
		t.Error(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}
