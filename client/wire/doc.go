// Package wire holds the bytes of the state store protocol: RESP3 payloads,
// hybrid logical clock versions, MQTT topics and user-property names. It opens
// no connection. Its only state is the state of a [Clock].
//
// The first things to call are [AppendRequest] to build a request and
// [ParseReply] to read its answer:
//
//	payload := wire.AppendRequest(nil, "SET", key, value, "NX")
//	…
//	reply, err := wire.ParseReply(answer)
//
// Both ends of the protocol, client and emulator, use this package, so a mistake in it
// would be symmetrical and pass their tests. Therefore testdata/vectors.txt holds the
// expected bytes, written by hand from protocol.md and never taken from the output of this
// package.
//
// Encoders append to a slice. Decoders take a whole message, and check every announced
// length against the remaining bytes before they allocate memory. No input makes them panic.
// Decoded values alias the message, so they are valid only until the message is changed or
// reused.
package wire
