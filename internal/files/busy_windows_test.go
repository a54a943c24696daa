package files

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReplaceOpenFile replaces a file that another handle closes shortly after the call of Replace.
func TestReplaceOpenFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	tries := 0
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	next := name + ".next"
	if err := os.WriteFile(next, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = RetryBusy(func() error {
		if tries++; tries == 3 {
			f.Close()
		}
		return os.Rename(next, name)
	})
	if text, readErr := os.ReadFile(name); err != nil || readErr != nil || string(text) != "new" || tries != 3 {
		t.Errorf("after %d tries: %v, %q, %v", tries, err, text, readErr)
	}
}
