//go:build !windows

package systext

// Unix returns text unchanged: on Unix, the error texts are the expected ones.
func Unix(text string) string { return text }
