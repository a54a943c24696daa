// Package mqtt makes one MQTT 5 connection. It always starts a clean session and never
// reconnects, and it knows nothing of the store.
//
// The first thing to call is [Dial], which sends CONNECT and SUBSCRIBE in one
// write and returns when both have been granted:
//
//	conn, err := mqtt.Dial(ctx, mqtt.Options{
//		Address:   "127.0.0.1:1883",
//		ClientID:  "example-1",
//		Subscribe: []string{"clients/example-1/answers"},
//		OnMessage: func(m mqtt.Message) { … },
//	})
//	…
//	err = conn.Publish(ctx, mqtt.Message{Topic: "questions", Payload: …}, func(err error) { … })
//
// It connects over TCP, TLS and WebSockets, directly or through a proxy, with user name and
// password, a client certificate, or enhanced authentication ([Auth]). A [*DialError] names
// the [Stage] that it reached. The environment is not used.
//
// Promises:
//   - Every refusal is a [*ReasonError] with packet and reason code, also for pipelined
//     publishes.
//   - The broker's Receive Maximum, Maximum Packet Size and Server Keep Alive are
//     respected. A subscription granted with QoS 0 is an error.
//   - An announced length costs memory only as its bytes arrive, and the buffer for a slow
//     broker is limited. A message that cannot be decoded ends the connection and does no
//     other harm.
//   - Messages are handed over one at a time in the order they came, and acknowledged once
//     all messages of the same read have been handed over.
//   - A Conn may be used by several goroutines. Its own goroutines have ended when Close
//     returns.
//   - On Linux a connection with few publishes in flight acknowledges TCP segments at once,
//     because a broker with Nagle's algorithm waits for that.
//
// Not promised: delivery. A publish that was not acknowledged before the connection ended
// may have been processed or not.
//
// Packets are encoded and decoded by paho.golang's packets package, except PUBLISH and
// PUBACK, which are frequent. Its client is not used, because it hides the reason codes of
// pipelined publishes and cannot send before CONNACK. WebSockets come from gorilla, SOCKS
// from golang.org/x/net.
package mqtt
