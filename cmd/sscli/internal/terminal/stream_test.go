package terminal

import (
	"os"
	"testing"
)

// TestUsesColor sets the variables that control colors. The stream is not a terminal.
func TestUsesColor(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tt := range []struct {
		color, none, force string
		want               bool
	}{
		{"auto", "", "", false},
		{"auto", "", "0", false},
		{"auto", "", "1", true},
		{"auto", "1", "1", false},
		{"auto", "0", "1", false}, // any value but the empty one, says no-color.org
		{"always", "1", "", true},
		{"never", "", "1", false},
	} {
		env := map[string]string{"NO_COLOR": tt.none, "CLICOLOR_FORCE": tt.force}
		s := Stream{File: file, Color: tt.color, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
		if got := s.UsesColor(); got != tt.want {
			t.Errorf("--color=%s NO_COLOR=%s CLICOLOR_FORCE=%s: %v, want %v", tt.color, tt.none, tt.force, got, tt.want)
		}
	}
}
