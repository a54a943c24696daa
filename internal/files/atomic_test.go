package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, content := range []string{"first", "", "second\x00\n"} {
		if err := Write(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
	for _, bad := range []string{dir, filepath.Join(dir, "missing", "file"), filepath.Join(name, "file")} {
		err := Write(bad, []byte("lost"), 0o644)
		if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Path != bad {
			t.Errorf("%s: %v, want a *PathError about it", bad, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "second\x00\n" {
		t.Errorf("the old content is gone: %q, %v", got, err)
	}
}

func TestMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits")
	}
	dir := t.TempDir()
	name, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chmod(name, 0o666)); err != nil { // the usual umask clears two of these bits
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	mode := func(name string) fs.FileMode {
		t.Helper()
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if err := Write(link, []byte("kept"), 0o600); err != nil || mode(name) != 0o666 || mode(link)&fs.ModeSymlink == 0 {
		t.Errorf("Write through a link: %v, file %v, link %v", err, mode(name), mode(link))
	}
	if err := Replace(link, []byte("new"), 0o600); err != nil || mode(link) != 0o600 {
		t.Errorf("Replace of a link: %v, %v", err, mode(link))
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "kept" {
		t.Errorf("Replace of a link changed the file: %q, %v", got, err)
	}
}
