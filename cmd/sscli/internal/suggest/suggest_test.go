package suggest_test

import (
	"slices"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

func TestNear(t *testing.T) {
	names := []string{"get", "set", "serve", "ca-file", "cert-file", "client-id", "shell", "lab", "lab-2", "laboratory"}
	for _, tt := range []struct {
		word string
		want []string
	}{
		{"gett", []string{"get"}},
		{"GTE", []string{"get"}},
		{"ca-flie", []string{"ca-file"}},
		{"cert-fil", []string{"cert-file"}},
		{"lab-3", []string{"lab-2"}},
		{"labor", []string{"laboratory"}},
		{"hello", nil},
		{"certfiel", []string{"cert-file"}},
		{"labora", []string{"laboratory"}},
		{"la", []string{"lab"}},
		{"client", []string{"client-id"}},
		{"", nil},
		{"nothing", nil},
	} {
		if got := suggest.Near(tt.word, names); !slices.Equal(got, tt.want) {
			t.Errorf("Near(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}
