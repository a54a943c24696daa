//go:build !windows

package busyfile

// Retry calls do once.
func Retry(do func() error) error { return do() }
