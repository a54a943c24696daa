package sources

import (
	"slices"
	"testing"

	"golang.org/x/sys/windows"
)

// TestHidden: files that Explorer hides, such as its own desktop.ini, are not keys.
func TestHidden(t *testing.T) {
	tree(t, map[string]string{"dir/a": "1", "dir/desktop.ini": "2", "dir/hidden/b": "3"})
	for _, name := range []string{`dir\desktop.ini`, `dir\hidden`} {
		path, err := windows.UTF16PtrFromString(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := windows.SetFileAttributes(path, windows.FILE_ATTRIBUTE_HIDDEN); err != nil {
			t.Fatal(err)
		}
		if set, err := windows.GetFileAttributes(path); err != nil || set&windows.FILE_ATTRIBUTE_HIDDEN == 0 {
			t.Skip("this file system keeps no attributes: ", err)
		}
	}
	if got, want := read(t.Context(), "", "dir"), []string{`a="1"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
