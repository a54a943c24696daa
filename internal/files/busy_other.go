//go:build !windows

package files

// RetryBusy calls do once.
func RetryBusy(do func() error) error { return do() }
