package files

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAgain: a file is read again, a pipe is not.
func TestAgain(t *testing.T) {
	t.Parallel()
	file, missing := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "missing")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		names []string
		want  int
	}{{[]string{file}, 3}, {[]string{file, ""}, 3}, {[]string{missing}, 3}, {[]string{file, os.DevNull}, 1}, {nil, 3}} {
		reads := 0
		again := Again(func() (int, error) { reads++; return reads, nil }, tt.names...)
		for range 3 {
			if n, err := again(); n != reads || err != nil {
				t.Errorf("%q: got %d, %v after %d reads", tt.names, n, err, reads)
			}
		}
		if reads != tt.want {
			t.Errorf("%q: read %d times, want %d", tt.names, reads, tt.want)
		}
	}
}
