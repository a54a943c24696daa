//go:build unix

package config

import "io/fs"

func othersWrite(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }
