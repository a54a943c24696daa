package format_test

import (
	"testing"

	"github.com/sscli/sscli/format"
)

// TestLocation: the name in a location is the file's name, whatever it consists of.
func TestLocation(t *testing.T) {
	for _, test := range []struct {
		file         string
		line, column int
		want         string
	}{
		{"authz.yaml", 19, 0, "authz.yaml:19"},
		{`with space\authz.yaml`, 19, 3, `with space\authz.yaml:19:3`},
		{`C:\dir\é.csv`, 0, 0, `C:\dir\é.csv`},
		{"-", 2, 1, "standard input:2:1"},
		{"a\x1b[2J\nb", 1, 0, `a\x1b[2J\nb:1`},
	} {
		if got := format.Location(test.file, test.line, test.column); got != test.want {
			t.Errorf("Location(%q, %d, %d) = %s, want %s", test.file, test.line, test.column, got, test.want)
		}
	}
}
