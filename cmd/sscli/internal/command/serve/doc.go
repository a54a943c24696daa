// Package serve is the command `sscli serve`: the emulator as a server, a server for one
// command, or a store on another broker (--attach).
//
//	sscli serve
//	sscli serve -- make integration-test
//	sscli serve --attach -u mqtt://127.0.0.1:1883
//
// The URL is printed once the server accepts connections, so a script that has read it can
// connect. The server ends when its command ends, or at a signal. Without --data, the keys are
// then lost.
package serve
