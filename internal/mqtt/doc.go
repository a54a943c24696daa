// Package mqtt is an MQTT 5 client for a single connection. It always starts a clean session,
// never reconnects, and knows nothing about the state store.
//
// [Dial] sends CONNECT and SUBSCRIBE in one write and returns when the broker has accepted
// both:
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
// Dial connects over TCP, TLS or WebSockets, directly or through a proxy, and logs in with a
// user name and password, a client certificate, or enhanced authentication ([Auth]). If Dial
// fails, the error is a [*DialError] with the [Stage] that failed. Environment variables such as
// HTTPS_PROXY are ignored.
//
// Promises:
//   - Every refusal by the broker is reported as a [*ReasonError] with the packet and the
//     reason code, even for pipelined publishes.
//   - The client respects the broker's Receive Maximum, Maximum Packet Size and Server Keep
//     Alive. A subscription granted with QoS 0 is an error.
//   - Memory for a large packet grows as its bytes arrive, whatever length the packet announces.
//     The buffer of unsent packets is limited. A packet that cannot be decoded ends the
//     connection and does no other harm.
//   - Messages are passed to the callback one at a time, in the order in which they arrive. Their
//     PUBACKs are sent after all messages of one read have been passed on.
//   - Several goroutines may use a Conn. When Close returns, the goroutines of the Conn have ended.
//   - On Linux, a connection with few publishes in flight acknowledges TCP segments immediately,
//     because a broker that uses Nagle's algorithm waits for the acknowledgement.
//
// Delivery is not promised. If the connection ends before a publish is acknowledged, the
// broker may or may not have processed it.
//
// paho.golang's packets package encodes and decodes all packets except PUBLISH and PUBACK,
// which are frequent. paho's client is not used, because it hides the reason codes of
// pipelined publishes and cannot send before CONNACK. WebSockets come from
// gorilla/websocket, SOCKS from golang.org/x/net.
package mqtt
