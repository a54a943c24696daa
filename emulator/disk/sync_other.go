//go:build !unix

package disk

// syncDir does nothing: only Unix requires syncing a directory.
func syncDir(string) error { return nil }
