//go:build !unix

package disk

// syncDir does nothing: only Unix wants a directory to be synced.
func syncDir(string) error { return nil }
