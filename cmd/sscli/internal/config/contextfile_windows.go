package config

import "io/fs"

// othersWrite returns false. Windows has access control lists in place of modes, and the list of a
// user's own directory keeps others out.
func othersWrite(fs.FileInfo) bool { return false }
