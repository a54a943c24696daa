// Package statestorecli is the command line of Microsoft's tool statestore-cli, for scripts that
// were written for that tool.
//
// If the program is called by [Name], through a link or a copy, main uses [New] in place of the
// command table. The commands get, set and delete have that tool's flags. The random client id,
// the bytes on the wire, the errors and the exit codes are sscli's.
package statestorecli
