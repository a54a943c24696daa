package config

import "io/fs"

// othersWrite returns false. Windows has access control lists in place of modes, and the access control
// list of the user's own directory keeps other users out.
func othersWrite(fs.FileInfo) bool { return false }
