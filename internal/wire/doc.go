// Package wire encodes and decodes the state store protocol: RESP3 payloads, hybrid logical
// clock versions, MQTT topics and user-property names. It opens no connections. Only a [Clock]
// keeps state.
//
// Start with [AppendRequest], which builds a request, and [ParseReply], which reads the answer:
//
//	payload := wire.AppendRequest(nil, "SET", key, value, "NX")
//	…
//	reply, err := wire.ParseReply(answer)
//
// Client and emulator both use this package, so they would agree on a mistake in it and their
// tests would still pass. Therefore testdata/vectors.txt holds the expected bytes, written by
// hand from protocol.md and never copied from this package's output.
//
// Encoders append to a slice. Decoders take a whole message, and check every announced
// length against the remaining bytes before they allocate memory. No input makes them panic.
// Decoded values alias the message, so they are valid only until the message is changed or
// reused.
package wire
