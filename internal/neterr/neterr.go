// Package neterr defines the errors of sockets for errors.Is. On Windows, Winsock's error numbers
// differ from the ones in package syscall.
//
//	if errors.Is(err, neterr.Refused) {
package neterr
