package files

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Follow returns the file that a symbolic link leads to, over any number of links. That file need not
// exist. If name is no link, Follow returns name.
func Follow(name string) (string, error) {
	if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return name, nil
	}
	target, err := filepath.EvalSymlinks(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return target, err
	}
	to, err := os.Readlink(name)
	if err != nil {
		return "", err
	}
	dir, base := filepath.Split(name)
	if dir, err = filepath.EvalSymlinks(cmp.Or(dir, ".")); err != nil { // a link is relative to the directory that it is in
		return "", err
	}
	return Follow(Beside(filepath.Join(dir, base), to))
}

// Beside returns the path of name, which is written in file. A relative name is relative to the
// directory of file. On Windows a name such as \x is on the drive or share of file, and C:x stays
// relative to the current directory of drive C.
func Beside(file, name string) string {
	switch {
	case filepath.VolumeName(name) != "":
		return name
	case name != "" && os.IsPathSeparator(name[0]):
		return filepath.VolumeName(file) + name
	}
	return filepath.Join(filepath.Dir(file), name)
}
