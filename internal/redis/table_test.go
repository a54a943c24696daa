package redis

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocumented: docs/redis.md names every command.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for i, text := range strings.Split(string(page), "`") {
		if i%2 == 1 { // between two backticks
			words = append(words, strings.Fields(text)...)
		}
	}
	for _, cmd := range newTable().rows {
		if name := strings.ToUpper(cmd.name); !slices.Contains(words, name) {
			t.Errorf("%s is missing", name)
		}
	}
}
