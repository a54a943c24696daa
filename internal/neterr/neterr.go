// Package neterr defines socket errors for use with errors.Is. On Windows, the error numbers of
// Winsock differ from the constants in package syscall.
//
//	if errors.Is(err, neterr.Refused) {
package neterr
