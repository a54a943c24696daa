package cluster

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// TestScalar: YAML reads each name of a resource as a string.
func TestScalar(t *testing.T) {
	for _, name := range []string{"sscli", "123", "1e3", "0x1f", "0.5", "10.0.0.1", "2026-11-27", "true", "null", "no", "y", "inf", "a.b-c"} {
		var got any
		if err := yaml.Unmarshal([]byte(scalar(config.Text(name))), &got); err != nil || got != name {
			t.Errorf("%s: %#v, %v", name, got, err)
		}
	}
}
