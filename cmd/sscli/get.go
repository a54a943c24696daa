package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/config"
	"github.com/sscli/sscli/format"
)

func newGet() verb {
	var file config.Text
	var versionOnly, lines bool
	return verb{
		use:   "get KEY...",
		short: "Print values and their versions",
		long: `Print the value of a key and its version. Exit code 1 if a key is missing.

In the raw form one key gives its bytes and nothing else; several keys give lines of
KEY, VERSION and VALUE, separated by tabs, with C escapes (- for the version of a
missing key).`,
		example: "  sscli get setpoint\n  sscli get -f image.png camera/last\n  sscli get -o json a b c",
		flags: func(fs *pflag.FlagSet) {
			fs.VarP(&file, "file", "f", "write the value's bytes to `FILE`, all or nothing, and print the version")
			fs.BoolVar(&versionOnly, "version-only", false, "print the version without the value")
			fs.BoolVar(&lines, "lines", false, "use the lines of several keys also for one")
		},
		parse: func(args []string, _ stdin) (request, error) {
			if len(args) == 0 {
				return request{}, usage("no key: want get KEY...")
			}
			if file != "" && len(args) > 1 {
				return request{}, usage("-f with %d keys: want one", len(args))
			}
			req := request{}
			for _, key := range args {
				req.commands = append(req.commands, client.Get(unprotect(key)))
			}
			req.show = func(i int, result client.Result) (format.Result, bool, error) {
				r := result.(client.GetResult)
				if r.Found && file != "" {
					if err := writeFile(string(file), r.Value); err != nil {
						return nil, false, &outputError{err: err, file: true}
					}
				}
				return format.Get{
					Key: unprotect(args[i]), Found: r.Found, Value: r.Value, Version: version(r.Version), RTT: r.RTT,
					Many: lines || len(args) > 1, VersionOnly: versionOnly || file != "",
				}, r.Found, nil
			}
			return req, nil
		},
	}
}

// writeFile replaces a file by one with these bytes and the same permissions, or
// leaves it as it is. What is no file, such as a device or a pipe, is written to.
// The error is a *[fs.PathError] about name.
func writeFile(name string, data []byte) error { return writeNewFile(name, data, 0o666) }

// writeNewFile is writeFile, with permissions for a file that is new.
func writeNewFile(name string, data []byte, mode fs.FileMode) error {
	if err := replaceFile(name, data, mode); err != nil {
		// The cause alone: the user knows nothing of the temporary file.
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		} else if e, ok := errors.AsType[*os.LinkError](err); ok {
			err = e.Err
		}
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

func replaceFile(name string, data []byte, mode fs.FileMode) (err error) {
	if old, err := os.Stat(name); err == nil {
		if !old.Mode().IsRegular() {
			return writeTo(name, data)
		}
		mode = old.Mode().Perm()
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	temp := filepath.Join(filepath.Dir(name), ".sscli-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	if _, err = f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(temp, name)
}

func writeTo(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
