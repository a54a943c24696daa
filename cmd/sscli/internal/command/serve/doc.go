// Package serve is the command `sscli serve`: the emulator as a server, a server for one
// command, or a store on another broker (--attach).
//
//	sscli serve
//	sscli serve -- make integration-test
//	sscli serve --attach -u mqtt://127.0.0.1:1883
//
// The URL is printed once the server accepts connections, so a script that has read it can
// connect. The server ends with its command, or at a signal. Unless --data names a file, its
// keys are lost then.
package serve
