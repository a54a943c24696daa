package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// kept commits a record to the named file, and opens the file again.
func kept(t *testing.T, name string) {
	t.Helper()
	f, _ := open(t, name)
	var b Batch
	b.Put(record(1))
	commit(t, f, &b)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, got := open(t, name)
	if diff := compare([]Record{record(1)}, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCreateAgain: what an interrupted creation leaves does not prevent a later one, not even by a process with the same
// id, as in a container, and an error leaves nothing.
func TestCreateAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "store.db")
	full := errors.New("no space left on device")
	var draft string
	_, err := Open(name, Options{OpenFile: func(path string, flag int, perm os.FileMode) (*os.File, error) {
		draft = path
		return nil, errors.Join(os.WriteFile(path, make([]byte, 5000), perm), full)
	}}, func(Record) {})
	if !errors.Is(err, full) {
		t.Errorf("open on a full disk: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left on a full disk: %v, %v", left, err)
	}
	for _, left := range []string{draft, fmt.Sprintf("%s.%d.new", name, os.Getpid())} {
		if err := os.WriteFile(left, make([]byte, 5000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept(t, name)
}

// TestCreateLinked: a symbolic link leads to the file, also before the file exists.
func TestCreateLinked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(there, 0o700), os.Symlink(filepath.Join("there", "store.db"), link)); err != nil {
		t.Skip(err)
	}
	if _, err := os.Lstat(link); err != nil {
		t.Skip("this system has no symbolic links: it says that it made one, but", err)
	}
	kept(t, link)
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if want := []string{filepath.Join(there, "store.db")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("files: %q, %v, want %q", left, err, want)
	}
}
