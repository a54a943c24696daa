package records

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// OpenKey opens the file in dir that holds a key's records, and returns the options to read it. A
// missing file is a usage error.
func OpenKey(dir, key string) (io.ReadCloser, Options, error) {
	extensions := []string{"", ".jsonl", ".ndjson", ".json", ".csv", ".tsv"}
	if info, err := os.Stat(dir); err != nil {
		return nil, Options{}, err
	} else if !info.IsDir() {
		return nil, Options{}, fmt.Errorf("--data %s: expected a directory", format.Path(dir))
	}
	for _, extension := range extensions {
		local := filepath.FromSlash(key + extension)
		name := filepath.Join(dir, local)
		info, err := os.Stat(name)
		if !filepath.IsLocal(local) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		file, err := os.Open(name)
		return file, Options{Name: name, Stored: extension == "" && filepath.Ext(key) == ""}, err
	}
	return nil, Options{}, fault.Usagef("add %s.jsonl or %[1]s.csv to %s", format.BriefWord(key), format.Path(dir))
}
