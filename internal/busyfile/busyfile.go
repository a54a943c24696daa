// Package busyfile tries again when Windows refuses to open, replace or remove a file because
// another process is using it.
//
//	err := busyfile.Retry(func() error { return os.Rename(next, name) })
//
// On Unix, another process that uses the file does not prevent these operations.
package busyfile
