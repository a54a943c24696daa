//go:build !windows

package systext

// Unix returns text as it is.
func Unix(text string) string { return text }
