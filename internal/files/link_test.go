package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteThroughLinks: Write follows links, also in a directory that is a link itself, and to a file that does not
// exist yet.
func TestWriteThroughLinks(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		links map[string]string // the text of each link
		write string
		want  string // the file that gets the content
	}{
		"a link":                          {map[string]string{"link": "target"}, "link", "target"},
		"a chain":                         {map[string]string{"link": "real/next", "real/next": "target"}, "link", "real/target"},
		"up from a linked directory":      {map[string]string{"alias": "real/deep", "real/deep/link": "../target"}, "alias/link", "real/target"},
		"a chain over linked directories": {map[string]string{"alias": "real/deep", "link": "alias/next", "real/deep/next": "../target"}, "link", "real/target"},
	} {
		for _, exists := range []bool{false, true} {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "real", "deep"), 0o700); err != nil {
				t.Fatal(err)
			}
			for link, to := range tt.links {
				if err := os.Symlink(filepath.FromSlash(to), filepath.Join(dir, filepath.FromSlash(link))); err != nil {
					t.Skip(err)
				}
				if _, err := os.Lstat(filepath.Join(dir, link)); err != nil {
					t.Skip("this system has no symbolic links: it says that it made one, but", err)
				}
			}
			want := filepath.Join(dir, filepath.FromSlash(tt.want))
			if exists {
				if err := os.WriteFile(want, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := Write(filepath.Join(dir, filepath.FromSlash(tt.write)), []byte("new"), 0o600); err != nil {
				t.Errorf("%s, exists %v: %v", what, exists, err)
			}
			if info, err := os.Lstat(want); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s, exists %v: %v, want a file %s", what, exists, err, tt.want)
			}
			for link := range tt.links {
				if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(link))); err != nil || info.Mode()&fs.ModeSymlink == 0 {
					t.Errorf("%s, exists %v: %s is no link any more: %v", what, exists, link, err)
				}
			}
		}
	}
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if err := Write(loop, nil, 0o600); err == nil {
		t.Error("a link to itself was followed")
	} else if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Path != loop {
		t.Errorf("%v, want an error about %s", err, loop)
	}
}
