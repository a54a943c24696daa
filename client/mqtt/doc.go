// Package mqtt is one MQTT 5 connection. It knows no store and no session: it
// always starts clean, and when the connection ends it is over.
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
// It gets there over TCP, TLS and WebSockets, directly or by a proxy, with user name
// and password, a client certificate, or enhanced authentication ([Auth]); a
// [*DialError] names the [Stage] that it got to. The environment is not looked at.
//
// Promises: every refusal is a [*ReasonError] that names packet and reason
// code, also for publishes that are pipelined; the broker's Receive Maximum,
// Maximum Packet Size and Server Keep Alive are respected; an announced length
// costs memory only as its bytes arrive, and what waits for a slow broker is bounded;
// messages are handed over one at a time in the order of the wire, and acknowledged as
// soon as all that came with them has been; a subscription that is granted QoS 0 is
// refused; a message that cannot be decoded ends the connection and nothing else. A
// Conn may be used by several goroutines, and its own goroutines have ended when Close
// returns. On Linux a connection with little under way acknowledges TCP segments at
// once, because a broker with Nagle's algorithm waits for that.
//
// Not promised: delivery. A publish whose acknowledgement did not come before
// the connection ended may have been processed or not.
//
// Packets are encoded and decoded by paho.golang's packets package, but for PUBLISH and
// PUBACK, of which there are many; its client is not used, because it hides the reason codes of pipelined publishes and
// cannot send before CONNACK. WebSockets are gorilla's, SOCKS is golang.org/x/net's.
package mqtt
