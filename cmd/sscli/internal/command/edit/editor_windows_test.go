package edit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
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
