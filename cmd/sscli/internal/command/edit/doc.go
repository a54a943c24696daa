// Package edit is the command `sscli edit`: the value of a key in the user's editor.
//
//	sscli edit config
//	sscli edit config --lock config-lock
//
// [New] builds the command. A [document] is a value as it is edited, and back. What the user
// has typed is never lost: if it is not written, it stays in a file that the error names.
package edit
