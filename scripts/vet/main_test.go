package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: mistakes in files of one system only, and in their tests, are found for that system only.
func TestCheck(t *testing.T) {
	types := planted(t, map[string]string{
		"a_windows.go":      "package planted\n\nvar _ int = \"text\"\n",
		"b_windows_test.go": "package planted\n\nvar _ uint8 = 1 << 8\n",
		"c_386.go":          "package planted\n\nvar _ int = 1 << 40\n",
	})
	formats := planted(t, map[string]string{
		"a_windows.go":      "package planted\n\nimport \"fmt\"\n\nfunc f() { fmt.Printf(\"%d\", \"text\") }\n",
		"b_windows_test.go": "package planted\n\nimport \"fmt\"\n\nfunc g() { fmt.Printf(\"%s\") }\n",
	})
	for _, directory := range []string{types, formats} {
		if err := check(directory, "darwin/arm64"); err != nil {
			t.Errorf("for macOS, in files of Windows: %v", err)
		}
	}
	for directory, files := range map[string][]string{types: {"a_windows.go", "b_windows_test.go", "c_386.go"}, formats: {"a_windows.go", "b_windows_test.go"}} {
		err := check(directory, "windows/386")
		for _, name := range files {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("nothing is found in %s: %v", name, err)
			}
		}
	}
}

// planted makes a module with these files.
func planted(t *testing.T, files map[string]string) (directory string) {
	directory = t.TempDir()
	files["go.mod"] = "module planted\n\ngo 1.26\n"
	files["main.go"] = "package planted\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}
