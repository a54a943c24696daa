package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// A file is a key whose value comes from a file, or from the text of a manifest.
type file struct {
	key     string
	name    string // name of the file; empty = the field text is the value
	root    string // the directory that the file must be in; empty = anywhere
	text    string
	dataset bool // whether to convert the file's records to JSON Lines
	comma   rune // of a CSV file; 0 = by its name
	o       Options
	options client.SetOptions
	where   string          // where the key is defined, for errors
	digest  exchange.Digest // of the value, as the first pass found it
}

// newFile returns the file for a key. name is the path of the file that holds the value.
func newFile(key, name string) file {
	return file{key: key, name: name, dataset: isDataset(name), where: format.Path(name)}
}

// isDataset reports whether a file is a data set, judging by its extension.
func isDataset(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".csv" || ext == ".jsonl"
}

// keyOf returns the key for the path of a file. A data set's key has no extension, because its value
// is JSON Lines in any case.
func keyOf(path string) string {
	key := filepath.ToSlash(path)
	if isDataset(key) {
		key = strings.TrimSuffix(key, filepath.Ext(key))
	}
	return key
}

// fileList returns a source for a list of files. Its first pass reads every file. Later passes read a file only if
// its value must be loaded, and expect the same value.
func fileList(all []file, o Options) source {
	for i := range all {
		all[i].o = o
	}
	return func(ctx context.Context, values bool) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			for i := range all {
				f, err := &all[i], context.Cause(ctx)
				if err == nil && !values {
					var value []byte
					value, err = f.content(ctx, true)
					f.digest = exchange.DigestOf(value)
				}
				load := func(guess []byte) ([]byte, error) { return f.load(ctx, guess) }
				e := Entry{Key: f.key, Found: true, Options: f.options, Load: load}
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// load implements [Entry.Load].
func (f *file) load(ctx context.Context, guess []byte) ([]byte, error) {
	if exchange.DigestOf(guess) == f.digest {
		return guess, nil
	}
	value, err := f.content(ctx, false)
	if err == nil && exchange.DigestOf(value) != f.digest {
		value, err = nil, inSource(f.name, changed())
	}
	return value, err
}

// content returns the value of the key, and checks that the store would accept it. first is true in the first pass.
func (f *file) content(ctx context.Context, first bool) (value []byte, err error) {
	switch {
	case f.name == "":
		value = []byte(f.text)
	case f.dataset:
		value, err = f.records(ctx, first)
	default:
		value, err = f.bytes()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil {
		if err = client.Set(f.key, value).Check(); err != nil {
			err = fmt.Errorf("%s: %w", f.where, err)
		}
	}
	if err != nil && !fault.IsA[*fault.UsageError](err) {
		err = &fault.UsageError{Err: err}
	}
	return value, err
}

func (f *file) bytes() ([]byte, error) {
	in, err := f.openRegular()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return files.ReadAll(in, files.MaxValue)
}

// openRegular is like open, but the file must be a regular one: a directory could not be read, and opening a pipe
// would wait for its writer.
func (f *file) openRegular() (*os.File, error) {
	if info, err := os.Stat(f.name); err == nil && !info.Mode().IsRegular() {
		return nil, fault.Usagef("%s: expected a regular file", format.Path(f.name))
	}
	return f.open()
}

// open opens the file. Unless links are followed, a file that is not in root is an error, whatever a link
// leads to at this time.
func (f *file) open() (*os.File, error) {
	if f.root == "" || f.o.Follow {
		return files.Open(f.name)
	}
	if below, err := filepath.Rel(f.root, f.name); err == nil {
		var in *os.File
		err = files.RetryBusy(func() error {
			in, err = os.OpenInRoot(f.root, below)
			return err
		})
		if err == nil {
			return in, nil
		}
	}
	in, err := files.Open(f.name)
	if err != nil {
		return nil, err // the file is missing or forbidden, wherever it is
	}
	_ = in.Close()
	return nil, &fault.UsageError{
		Err: fmt.Errorf("%s: outside of %s, or an absolute link", format.Path(f.name), format.Path(f.root)), Hint: suggest.Run("--follow"),
	}
}

// records reads a data set, and returns it as JSON Lines. first is true in the first pass.
func (f *file) records(ctx context.Context, first bool) ([]byte, error) {
	in, err := f.openRegular()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	skipped := 0
	var value bytes.Buffer
	if size := files.Size(in); size <= files.MaxValue {
		value.Grow(int(size))
	}
	var survey dataset.Survey
	err = dataset.Copy(ctx, &value, in, dataset.Options{Name: f.name, Comma: f.comma, Skipped: &skipped}, &survey)
	bad, ok := errors.AsType[*dataset.Error](err)
	switch {
	case ok && bad.Separator != "":
		err = &fault.UsageError{Err: bad, Hint: separatorHint(f, bad.Separator)}
	case err == nil && len(survey.Fields) == 0 && !f.o.AllowEmpty:
		err = dataset.NoRecords(f.name)
	case err == nil && skipped > 0 && first && f.o.Inform != nil:
		f.o.Inform(format.Path(f.name) + ": " + dataset.SkippedRows(skipped))
	}
	return value.Bytes(), err
}

// separatorHint returns the hint for a data set with other separators: the entry of a manifest, and the
// command that writes only this key.
func separatorHint(f *file, separator string) suggest.Hint {
	return append(suggest.Say("separator: "+format.Quote(separator)+" beside dataset: in a manifest"),
		suggest.Run("sscli", "dataset", "load", f.key, f.name, "--separator", separator)...)
}

// directory returns a source for the files below a directory. A file's key is o.Prefix, followed by the
// file's path below root as keyOf converts it. Files and directories whose names begin with a dot are
// left out, and on Windows also hidden ones. Symbolic links within root are followed, because Kubernetes
// mounts a ConfigMap as links to files in a directory whose name begins with a dot.
func directory(root string, o Options) (source, error) {
	var all []file
	seen := make(map[string]string) // the path of the file for each key
	var above []os.FileInfo
	var walk func(dir string) error
	walk = func(dir string) error {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(above, func(a os.FileInfo) bool { return os.SameFile(a, info) }) {
			return fmt.Errorf("%s: the link leads to a directory above it", format.Path(dir))
		}
		above = append(above, info)
		defer func() { above = above[:len(above)-1] }()
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			info, err := os.Stat(path)
			switch {
			case strings.HasPrefix(e.Name(), "."):
				continue
			case err != nil:
				return err
			case !info.IsDir() && !info.Mode().IsRegular() && !isHidden(info): // opening a pipe would wait for its writer
				return fmt.Errorf("%s: expected a regular file or a directory", format.Path(path))
			case e.Type()&os.ModeSymlink != 0:
				in, err := (&file{name: path, root: root, o: o}).open()
				if err != nil {
					return err
				}
				_ = in.Close() // was only read
			}
			switch {
			case isHidden(info):
				continue
			case info.IsDir():
				if err := walk(path); err != nil {
					return err
				}
				continue
			}
			below, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			f := newFile(o.Prefix+keyOf(below), path)
			f.root = root
			if other := seen[f.key]; other != "" {
				return fmt.Errorf("%s and %s: both are the key %s", format.Path(other), format.Path(path), format.BriefWord(f.key))
			}
			seen[f.key] = path
			all = append(all, f)
		}
		return nil
	}
	if err := walk(root); fault.IsA[*fault.UsageError](err) {
		return nil, err
	} else if err != nil {
		return nil, &fault.UsageError{Err: err}
	}
	return fileList(all, o), nil
}
