package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, content := range []string{"first", "", "second\x00\n"} {
		if err := writeFile(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
	for _, bad := range []string{dir, filepath.Join(dir, "missing", "file"), filepath.Join(name, "file")} {
		err := writeFile(bad, []byte("lost"))
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
