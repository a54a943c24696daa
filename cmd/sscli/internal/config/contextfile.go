package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/internal/files"
)

// A FileError means that a context file cannot be used.
type FileError struct {
	File string       // the name of the file
	Line int          // from 1; 0 = the file as a whole
	Key  string       // such as contexts.lab.url; empty = the error is not about a key
	Why  string       // what is wrong
	Hint suggest.Hint // the next command to type; nil = none
}

func (e *FileError) Error() string {
	text := e.File
	if e.Line > 0 {
		text += ":" + strconv.Itoa(e.Line)
	}
	if e.Key != "" {
		text += ": " + e.Key
	}
	return text + ": " + e.Why
}

// Advice returns the hint, which replaces that of the error's kind.
func (e *FileError) Advice() (hint suggest.Hint, ok bool) { return e.Hint, true }

// Path returns the name of the context file, and its source, which is zero for the default. The default is
// $XDG_CONFIG_HOME/sscli/config.yaml. If XDG_CONFIG_HOME is not an absolute path, $HOME/.config (on Windows
// %AppData%) takes its place. file is empty if neither is an absolute path.
func Path(flags *pflag.FlagSet, env func(string) (string, bool)) (file string, source Source) {
	if f := flags.Lookup("config"); f != nil && f.Changed {
		return f.Value.String(), Source{Flag: "config"}
	}
	if file, ok := env("SSCLI_CONFIG"); ok && file != "" {
		return file, Source{Env: "SSCLI_CONFIG"}
	}
	dir, _ := env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home, under := "HOME", ".config"
		if runtime.GOOS == "windows" {
			home, under = "AppData", ""
		}
		dir, _ = env(home)
		if !filepath.IsAbs(dir) {
			return "", Source{}
		}
		dir = filepath.Join(dir, under)
	}
	return filepath.Join(dir, "sscli", "config.yaml"), Source{}
}

// Load reads the context file that the flags and the environment name, and also returns the file's
// name. A missing file means that there are no contexts, unless --config names the file: then it is an
// error. The error is a *[FileError].
func Load(flags *pflag.FlagSet, env func(string) (string, bool)) (Contexts, string, error) {
	return load(flags, env, func(text []byte, file string) (Contexts, error) { return parse(text, file) })
}

// loadOne is like Load, but may leave out contexts other than name or, if name is empty, the chosen one.
func loadOne(flags *pflag.FlagSet, env func(string) (string, bool), name string) (Contexts, string, error) {
	return load(flags, env, func(text []byte, file string) (Contexts, error) {
		c, err := parse(narrow(text, name), file)
		if _, found := c.Named[cmp.Or(name, c.Chosen)]; err == nil && found {
			return c, nil
		}
		return parse(text, file)
	})
}

func load(flags *pflag.FlagSet, env func(string) (string, bool), parse func(text []byte, file string) (Contexts, error)) (Contexts, string, error) {
	file, source := Path(flags, env)
	if file == "" {
		return Contexts{}, "", nil
	}
	text, err := read(file)
	if errors.Is(err, fs.ErrNotExist) && source.Flag == "" {
		return Contexts{}, file, nil
	}
	var c Contexts
	if err == nil {
		c, err = parse(text, file)
	}
	return c, file, fileError(file, err)
}

func fileError(file string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*FileError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == file {
		err = e.Err
	}
	return &FileError{File: file, Why: err.Error()}
}

// read reads a context file. It refuses a file that other users can write to, because the file
// decides where passwords are sent.
func read(file string) ([]byte, error) {
	f, err := files.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && othersWrite(info) { // /dev/null has no contexts
		return nil, &FileError{
			File: file, Why: fmt.Sprintf("others can write to it (mode %#o)", info.Mode().Perm()), Hint: suggest.Run("chmod", "600", file),
		}
	}
	return io.ReadAll(io.LimitReader(files.NewTextReader(f), maxFile+1))
}

// maxFile is the maximum size of a context file, in bytes.
const maxFile = 2 << 20

// Edit reads the contexts in a file, calls change, and writes the result back. The file need not exist.
// Only one process edits at a time; others wait until ctx ends. Other processes read either the old
// file or the new one. The file gets mode 0600. If it is a symbolic link, its target is replaced.
//
// If change returns an error, Edit returns it and leaves the file as it was. Any other error is a
// *[FileError].
func Edit(ctx context.Context, file string, change func(*Contexts) error) error {
	target, err := files.Follow(file)
	if err != nil {
		return fileError(file, err)
	}
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		return &FileError{File: file, Why: "not a regular file"} // such as /dev/null, which must not be replaced
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fileError(file, err)
	}
	unlock, err := files.Lock(ctx, target+".lock")
	if err != nil {
		return fileError(file, err)
	}
	defer unlock()
	text, err := read(target)
	var c Contexts
	if err == nil {
		c, err = parse(text, target)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError(target, err)
	}
	if err := change(&c); err != nil {
		return err
	}
	text, err = render(c)
	if err == nil {
		err = files.Replace(target, text, 0o600)
	}
	return fileError(file, err)
}

// quoted returns the first 64 characters of a name in quotes, for an error.
func quoted(name string) string { return fmt.Sprintf("%.64q", name) }
