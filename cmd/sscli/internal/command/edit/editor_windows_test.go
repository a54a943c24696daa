package edit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestSplitCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "Program Files")
	program := filepath.Join(dir, "an editor.exe")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"":                           nil,
		" ":                          nil,
		"notepad":                    {"notepad"},
		`C:\tools\vim.exe`:           {`C:\tools\vim.exe`},
		"code --wait":                {"code", "--wait"},
		program:                      {program},
		`"` + program + `"`:          {program},
		`"` + program + `" -n "a b"`: {program, "-n", "a b"},
		`\\server\share\e.exe -x`:    {`\\server\share\e.exe`, "-x"},
	} {
		if got, err := splitCommand(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
}

// TestRemoveOpenFile removes a file that a virus scanner keeps open for a moment.
func TestRemoveOpenFile(t *testing.T) {
	e := &editRun{key: "a", doc: document{text: []byte("secret")}}
	if err := e.writeFile(); err != nil {
		t.Fatal(err)
	}
	scanner, err := os.Open(e.file)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { scanner.Close() })
	if err := e.removeFile(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(e.file)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}
