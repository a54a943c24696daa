package terminal

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestReadAll: a large input arrives whole, from a file, from the rest of a file and from a pipe.
func TestReadAll(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("0123456789abcdef\r\n"), 1<<20)
	name := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(t.Context(), name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("of a file, %d bytes, %v, want %d", len(got), err, len(want))
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(18, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAll(t.Context(), f); err != nil || !bytes.Equal(got, want[18:]) {
		t.Errorf("of the rest of a file, %d bytes, %v, want %d", len(got), err, len(want)-18)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.Write(want)
		_ = w.Close()
	}()
	if got, err := ReadAll(t.Context(), r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("of a pipe, %d bytes, %v, want %d", len(got), err, len(want))
	}
}
