package shell

import (
	"strings"
	"testing"
)

// TestKeep: the history does not keep an entry that may be secret, or that is too long to be useful.
func TestKeep(t *testing.T) {
	for entry, want := range map[string]bool{
		"get a":                             true,
		" get a":                            false,
		"set a " + strings.Repeat("v", 256): true,
		"set a " + strings.Repeat("v", 257): false,
		"get a --password-file f":           true,
		"get a --password=secret":           false,
		"get a -u mqtt://host":              true,
		"get a -u mqtt://ann@host":          true,
		"get a -u mqtt://ann:secret@host":   false,
		`get "a -u mqtt://ann:secret@host`:  false, // even if it is invalid
		"get a\nget b":                      true,
	} {
		if got := keep(entry); got != want {
			t.Errorf("keep(%.60q) = %v", entry, got)
		}
	}
}
