// Package wire holds the bytes of the state store protocol: RESP3 payloads,
// hybrid logical clock versions, MQTT topics and user-property names. It opens
// no connection and keeps no state but a [Clock]'s.
//
// The first things to call are [AppendRequest] to build a request and
// [ParseReply] to read its answer:
//
//	payload := wire.AppendRequest(nil, "SET", key, value, "NX")
//	…
//	reply, err := wire.ParseReply(answer)
//
// Both ends of the protocol use this package (the client and the emulator), so
// a mistake made here would be symmetrical. What the bytes have to be is
// therefore written down by hand in testdata/vectors.txt, from protocol.md and
// never from this package's own output.
//
// Promises: encoders append to the slice they are given; decoders take a whole
// message and check every announced length against the bytes that are there
// before they take memory; nothing here panics on any input. Not promised:
// decoded values alias the message they were decoded from, so a caller who
// changes or reuses the message changes them too.
package wire
