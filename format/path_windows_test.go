package format_test

import (
	"testing"

	"github.com/sscli/sscli/format"
)

func TestPath(t *testing.T) {
	for name, want := range map[string]string{
		`keys.txt`:               `keys.txt`,
		`C:\dir\keys.txt`:        `C:\dir\keys.txt`,
		`\\server\share\a b.txt`: `"\\server\share\a b.txt"`,
		"C:\\dir\\\x1b[31m":      `"C:\dir\\x1b[31m"`,
	} {
		if got := format.Path(name); got != want {
			t.Errorf("Path(%s) = %s, want %s", name, got, want)
		}
	}
}
