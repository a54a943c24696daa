package cluster

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// newTemp creates a directory and makes it the one for temporary files.
func newTemp(t *testing.T) string {
	t.Helper()
	temp := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, temp)
	}
	return temp
}

func mustMake(t *testing.T) *directory {
	t.Helper()
	d, err := newDirectory()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.path, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// TestAbandonedDirectory: the system releases the lock of a killed forward. The next forward removes that directory,
// and none that is locked.
func TestAbandonedDirectory(t *testing.T) {
	newTemp(t)
	running, killed := mustMake(t), mustMake(t)
	if err := killed.lock.Close(); err != nil {
		t.Fatal(err)
	}
	next := mustMake(t)
	if !exists(filepath.Join(running.path, "token")) || exists(killed.path) {
		t.Errorf("running: %v, want true; killed: %v, want false", exists(running.path), exists(killed.path))
	}
	for _, d := range []*directory{running, next} {
		if err := d.remove(); err != nil || exists(d.path) {
			t.Errorf("%v, exists: %v", err, exists(d.path))
		}
	}
}

// TestOtherDirectories: a forward never removes a file, a link, or a directory with another owner or another name.
func TestOtherDirectories(t *testing.T) {
	temp := newTemp(t)
	target := t.TempDir()
	if err := os.WriteFile(filepath.Join(target, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keep := []string{"sscli-edit-1", "sscli-forward-file", "sscli-forward-link"}
	if err := os.Mkdir(filepath.Join(temp, keep[0]), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(temp, keep[1]), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(temp, keep[2])); err != nil {
		t.Skip(err) // symbolic links need a privilege on Windows
	}
	if info, err := os.Lstat(filepath.Join(temp, keep[2])); err != nil || info.IsDir() {
		t.Skip("a link is a directory here, as with Wine")
	}
	foreign := filepath.Join(temp, "sscli-forward-foreign")
	if runtime.GOOS != "windows" && os.Geteuid() == 0 { // only root can change the owner of a directory
		if err := os.Mkdir(foreign, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		keep = append(keep, filepath.Base(foreign))
	}
	d := mustMake(t)
	for _, name := range keep {
		if !exists(filepath.Join(temp, name)) {
			t.Errorf("%s was removed", name)
		}
	}
	if !exists(filepath.Join(target, "token")) {
		t.Error("the target of the link was emptied")
	}
	if err := d.remove(); err != nil {
		t.Error(err)
	}
}

// TestDirectoriesAtOnce: a forward does not mistake a directory for abandoned while another forward creates it.
func TestDirectoriesAtOnce(t *testing.T) {
	newTemp(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				d, err := newDirectory()
				if err != nil {
					t.Error(err)
					return
				}
				if !exists(d.path) {
					t.Errorf("%s was removed", d.path)
				}
				if err := d.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
