// Package neterr names the errors of sockets. On Windows, Winsock has numbers of its own for them,
// which errors.Is does not match with those of package syscall.
//
//	if errors.Is(err, neterr.Refused) {
package neterr
