// Package busyfile tries again when Windows refuses to open, replace or remove a file because another
// process uses it.
//
//	err := busyfile.Retry(func() error { return os.Rename(next, name) })
//
// Unix does not refuse that.
package busyfile
