//go:build !windows

package edit

import "github.com/sscli/sscli/repl"

// splitCommand splits the command line of an editor into words, like a line of a batch.
func splitCommand(line string) (words []string, err error) {
	split, err := repl.Split(line)
	return repl.Texts(split), err
}
