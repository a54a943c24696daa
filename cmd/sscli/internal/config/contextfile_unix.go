//go:build unix

package config

import "io/fs"

// othersWrite reports whether the group or others can write to a file.
func othersWrite(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }
