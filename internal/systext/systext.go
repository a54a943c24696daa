// Package systext helps tests that compare messages which end in a text of the operating system.
//
//	got := systext.Unix(err.Error()) // "open x: no such file or directory" on Windows too
package systext
