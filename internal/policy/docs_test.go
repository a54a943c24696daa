package policy

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestFindingsDocumented: docs/authorization.md has a row for each kind of finding, in their order.
func TestFindingsDocumented(t *testing.T) {
	ids := func(name, pattern string) (found []string) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
		}
		return found
	}
	defined := ids("parse.go", `(?m)^\t[iI][dD]\w+ += "(SS\d{3})"$`)
	if documented := ids("../../docs/authorization.md", `(?m)^\| (SS\d{3}) \| .+ \| .+ \|$`); len(defined) < 28 || !slices.Equal(documented, defined) {
		t.Errorf("documented:\n%q\ndefined:\n%q", documented, defined)
	}
}
