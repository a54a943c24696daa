package dataset

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// ReadKey returns the records of a key from its file in dir, and the path of the file. The file is
// named like the key, with or without an extension such as .jsonl or .csv. Each loop over rows
// reads the file again. A missing file is a usage error.
func ReadKey(dir, key string) (rows iter.Seq2[Record, error], name string, err error) {
	extensions := []string{"", ".jsonl", ".ndjson", ".json", ".csv", ".tsv"}
	if info, err := os.Stat(dir); err != nil {
		return nil, "", err
	} else if !info.IsDir() {
		return nil, "", fmt.Errorf("--data %s: expected a directory", format.Path(dir))
	}
	for _, extension := range extensions {
		local := filepath.FromSlash(key + extension)
		name := filepath.Join(dir, local)
		info, err := os.Stat(name)
		if !filepath.IsLocal(local) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		o := Options{Name: name, Stored: extension == "" && filepath.Ext(key) == ""}
		return func(yield func(Record, error) bool) {
			file, err := os.Open(name)
			if err != nil {
				yield(Record{}, err)
				return
			}
			defer file.Close()
			Read(file, o)(yield)
		}, name, nil
	}
	return nil, "", fault.Usagef("add %s.jsonl or %[1]s.csv to %s", format.BriefWord(key), format.Path(dir))
}
