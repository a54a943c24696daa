// Package serve is the command `sscli serve`: the emulator as a server, a server for one
// command, or a store on another broker (--attach).
//
//	sscli serve
//	sscli serve -- make integration-test
//	sscli serve --attach -u mqtt://127.0.0.1:1883
//
// serve prints the URL when the server accepts connections, so that a script can wait for it. The
// server ends when its command ends or a signal arrives. Its keys are then lost, unless --data is
// given.
package serve
