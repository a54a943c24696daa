// Package atomicfile writes a file completely or not at all: readers see the old content
// or the new one, also after a crash.
//
//	err := atomicfile.Write("token", text, 0o600)
//
// Two writers of one file do not mix their contents; the last one wins.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of a file and keeps its permissions; a file that does not
// exist gets mode, less the umask. A symbolic link is followed. A device
// or a pipe is written to, not replaced. The error is a *[fs.PathError] about name.
func Write(name string, data []byte, mode fs.FileMode) error {
	target := name
	if old, err := os.Stat(name); err == nil {
		if !old.Mode().IsRegular() {
			return about(name, writeTo(name, data))
		}
		mode = old.Mode().Perm()
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return about(name, err)
		}
	}
	return about(name, replace(target, data, mode))
}

// Replace is like Write, but gives the file this mode, less the umask, also if it exists. A
// symbolic link is replaced, not followed.
func Replace(name string, data []byte, mode fs.FileMode) error {
	return about(name, replace(name, data, mode))
}

func replace(name string, data []byte, mode fs.FileMode) (err error) {
	temp := filepath.Join(filepath.Dir(name), ".sscli-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync() // or a crash may leave the new name with an empty file
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

func writeTo(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// about makes err name the file that the user knows, not the temporary one.
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
