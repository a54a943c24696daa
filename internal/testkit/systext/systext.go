// Package systext helps tests compare messages that contain an error text of the operating system.
//
//	got := systext.Unix(err.Error()) // "open x: no such file or directory" on Windows too
package systext
