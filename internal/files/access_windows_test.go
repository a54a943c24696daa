package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

func accessList(t *testing.T, name string) string {
	t.Helper()
	sd, err := windows.GetNamedSecurityInfo(name, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	return sd.String()
}

// TestWriteKeepsAccess: a new file is private, and a replaced file keeps its access list.
func TestWriteKeepsAccess(t *testing.T) {
	private, open := filepath.Join(t.TempDir(), "private"), filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	before := accessList(t, open)
	for _, name := range []string{private, open, private, open} {
		if err := Write(name, []byte("a"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if after := accessList(t, open); after != before {
		t.Errorf("%s became %s", before, after)
	}
	if list := accessList(t, private); list == before {
		t.Errorf("a private file has the list of the directory: %s", list)
	}
}

// TestReadOnly: Windows does not replace a read-only file, so Write does not wait for it either.
func TestReadOnly(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, []byte("old"), 0o400); err != nil {
		t.Fatal(err)
	}
	want := "write " + name + ": the file is read-only: permission denied"
	for what, write := range map[string]func(string, []byte, fs.FileMode) error{"Write": Write, "Replace": Replace} {
		begin := time.Now()
		if err := write(name, []byte("new"), 0o600); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
		if took := time.Since(begin); took >= time.Second {
			t.Errorf("%s took %v", what, took)
		}
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if text, readErr := os.ReadFile(name); string(text) != "old" || readErr != nil || len(left) != 1 || err != nil {
		t.Errorf("%q, %v, %v, %v", text, readErr, left, err)
	}
}
