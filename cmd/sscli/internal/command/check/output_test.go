package check

import (
	"os"
	"strings"
	"testing"
)

// TestMetricsDocumented: docs/monitoring.md lists each metric with its type, and no other.
func TestMetricsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families() {
		if !strings.Contains(string(page), "| `"+f.name+"` | "+f.kind+" |") {
			t.Errorf("no %s %s", f.kind, f.name)
		}
	}
	if n := strings.Count(string(page), "| `sscli_"); n != len(families()) {
		t.Errorf("%d metrics, want %d", n, len(families()))
	}
}
