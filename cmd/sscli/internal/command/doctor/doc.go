// Package doctor checks each step of a connection: `sscli doctor`.
//
// [New] makes the command. A checkup (doctor.go) runs its checks in order and prints each; the
// first that fails ends it, with the exit code that other commands would have:
//
//   - configuration.go: the settings, and where they come from;
//   - connect.go and certificates.go: name lookup, TCP, TLS, CONNECT, SUBSCRIBE;
//   - store.go: a read, and the round trip;
//   - with --write, scratch.go and clock.go: the clock, writes, notifications, SCAN, and the
//     dialect of the protocol.
//
// To add a check, write a method that ends with print, skip or fail, and call it from climb. A
// recorder (recorder.go) keeps what is seen of the connection, for the checks to read.
//
// Nothing is written without --write. Scratch keys are deleted at the end, and expire in any case.
package doctor
