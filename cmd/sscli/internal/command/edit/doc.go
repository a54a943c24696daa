// Package edit is the command `sscli edit`, which opens a key's value in the user's editor.
//
//	sscli edit config
//	sscli edit config --lock config-lock
//
// [New] builds the command. A [document] converts a value to the text in the editor, and back. The
// user's text is never lost: if it is not written to the store, it stays in a file that the error
// names.
package edit
