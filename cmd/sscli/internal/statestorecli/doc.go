// Package statestorecli is sscli under the name of Microsoft's tool, statestore-cli: its command
// line, for scripts that were written for it.
//
// main calls [New] in place of the command table if the program was called by that [Name], as a
// link or a copy. It has get, set and delete with that tool's flags. Random client id, bytes on
// the wire, errors and exit codes are sscli's.
package statestorecli
