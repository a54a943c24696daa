package edit

import (
	"os"
	"strings"

	"golang.org/x/sys/windows"
)

// splitCommand splits the command line of an editor into words, by the rules of Windows. If the whole
// line is the path of a file, it is one word: users seldom quote a path below "C:\Program Files".
func splitCommand(line string) ([]string, error) {
	if line = strings.TrimSpace(line); line == "" {
		return nil, nil
	}
	if info, err := os.Stat(line); err == nil && info.Mode().IsRegular() {
		return []string{line}, nil
	}
	return windows.DecomposeCommandLine(line)
}
