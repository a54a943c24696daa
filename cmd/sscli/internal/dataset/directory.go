package dataset

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// ReadKey returns the records of a key from its file in dir, and the path of the file. A file that is named
// like the key has what the store would have. With another extension, such as .jsonl or .csv, it is read
// as any source. Each loop over rows reads the file again. No file, which is a *[NoFileError], and two files
// are usage errors.
func ReadKey(dir, key string) (rows iter.Seq2[Record, error], name string, err error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, "", err
	} else if !info.IsDir() {
		return nil, "", fault.Usagef("--data %s: expected a directory", format.Path(dir))
	}
	var o Options
	for _, extension := range []string{"", ".jsonl", ".ndjson", ".json", ".csv", ".tsv"} {
		local := filepath.FromSlash(key + extension)
		name := filepath.Join(dir, local)
		info, err := os.Stat(name)
		if !filepath.IsLocal(local) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		if o.Name != "" {
			return nil, "", fault.Usagef("%s and %s: both are the key %s", format.Path(o.Name), format.Path(name), format.BriefWord(key))
		}
		o = Options{Name: name, Stored: extension == ""}
	}
	if o.Name == "" {
		return nil, "", &fault.UsageError{Err: &NoFileError{key, dir}}
	}
	return func(yield func(Record, error) bool) {
		file, err := files.Open(o.Name)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer file.Close()
		Read(files.Limit(file, files.MaxValue), o)(yield)
	}, o.Name, nil
}

// A NoFileError means that a directory has no file for a key. Its text says which file to add.
type NoFileError struct{ key, dir string }

func (e *NoFileError) Error() string {
	return fmt.Sprintf("add %s.jsonl or %[1]s.csv to %s", format.BriefWord(e.key), format.Path(e.dir))
}
