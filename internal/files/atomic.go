package files

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Write replaces the content of a file and keeps its permissions and, as far as the process may, its owner and
// group. A new file gets mode, less the umask. Write follows a symbolic link, even if its target does not exist yet, and writes to a device or
// a pipe instead of replacing it. The error wraps a *[fs.PathError] about name.
func Write(name string, data []byte, mode fs.FileMode) error {
	f, err := Create(name, mode)
	if err != nil {
		return err
	}
	return f.finish(data)
}

// Replace is like Write, but always puts a new file in place of name, with mode, less the umask. It does
// not keep an existing file's permissions, and it replaces a symbolic link, a device or a pipe instead of
// writing to it.
func Replace(name string, data []byte, mode fs.FileMode) error {
	f, err := createTemp(name, name, mode)
	if err != nil {
		return err
	}
	return f.finish(data)
}

// Exposed returns what users other than the owner may do to a file: "read", "write", "read and write", or "" for neither. It is ""
// if there is no such regular file, and on Windows, where the mode does not say who may.
func Exposed(name string) string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || runtime.GOOS == "windows" {
		return ""
	}
	reads, writes := info.Mode().Perm()&0o044 != 0, info.Mode().Perm()&0o022 != 0
	switch {
	case reads && writes:
		return "read and write"
	case writes:
		return "write"
	case reads:
		return "read"
	}
	return ""
}

// A File collects the new content of a file. Readers of a regular file see it only after Commit.
type File struct {
	f      *os.File
	name   string // as the user knows it
	target string // where Commit moves the content; empty for a device or a pipe
}

// Create is like Write, for content that comes in pieces. The caller must call Commit or Discard.
func Create(name string, mode fs.FileMode) (*File, error) {
	if old, err := os.Stat(name); err == nil {
		if !old.Mode().IsRegular() {
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				return nil, about(name, err)
			}
			return &File{f: f, name: name}, nil
		}
		mode = old.Mode().Perm()
		target, err := filepath.EvalSymlinks(name)
		if err != nil {
			return nil, about(name, err)
		}
		f, err := createTemp(name, target, mode)
		if err != nil {
			return nil, err
		}
		if err := CopyAccess(target, f.f.Name()); err != nil {
			return nil, errors.Join(about(name, err), f.Discard())
		}
		return f, nil
	}
	target, err := Follow(name)
	if err != nil {
		return nil, about(name, err)
	}
	return createTemp(name, target, mode)
}

func createTemp(name, target string, mode fs.FileMode) (*File, error) {
	temp := filepath.Join(filepath.Dir(target), ".sscli-"+rand.Text())
	f, err := OpenPrivate(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, about(name, err)
	}
	return &File{f: f, name: name, target: target}, nil
}

// Write appends to the content. The error is a *[fs.PathError] about the file's name.
func (f *File) Write(data []byte) (int, error) {
	n, err := f.f.Write(data)
	return n, about(f.name, err)
}

// Commit replaces the file's content with the new content. If it returns an error, a regular file is
// unchanged.
func (f *File) Commit() error {
	if f.target == "" {
		return about(f.name, f.f.Close())
	}
	err := f.f.Sync() // otherwise a crash may leave an empty file
	err = errors.Join(err, f.f.Close())
	if err == nil {
		err = move(f.f.Name(), f.target)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.f.Name()))
	}
	return about(f.name, err)
}

// Discard drops the new content and leaves a regular file as it was.
func (f *File) Discard() error {
	err := f.f.Close()
	if f.target != "" {
		err = errors.Join(err, os.Remove(f.f.Name()))
	}
	return about(f.name, err)
}

func (f *File) finish(data []byte) error {
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}

// about returns err as a *[fs.PathError] about name, the file that the user knows, in place of the
// temporary file.
func about(name string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return &fs.PathError{Op: "write", Path: name, Err: err}
}
