// Package broker is an MQTT broker for MQTT 5 and MQTT 3.1.1. It knows no state store:
// what is published to one topic, [Options].Topic, can be given to a handler in place
// of subscribers, and package emulator puts its store there.
//
// The first thing to call is [New], then [Broker.Serve] for each listener:
//
//	b := broker.New(broker.Options{})
//	ln, err := net.Listen("tcp", "127.0.0.1:1883")
//	…
//	b.Serve(ln)
//	defer b.Close()
//
// # One lock
//
// A Broker is a [sync.Locker]. Every packet is processed, and every packet is queued,
// while it is locked, so all clients see changes in one order. The connection's own
// goroutine holds the lock for all complete packets of one read, at most [readBuffer]
// bytes, or a single packet that is larger. Unlock writes what was queued: one write for
// each client, however many packets that are. Callbacks run with the lock held unless
// their comment says otherwise. They may call the methods that want the lock, and must
// not block.
//
// # Delivery
//
// Each client has one outbox. When it is full the client is disconnected with 0x97
// (Quota exceeded). No message is left out silently, except when it is larger than the
// client's Maximum Packet Size [MQTT-3.1.2-24] or its Message Expiry Interval has passed.
//
// Messages for a session whose client is away are kept in order, up to [Options].Queue.
// When there is no room the publisher gets PUBACK or PUBREC 0x97. Messages with QoS 0 are
// not kept. Sessions and messages are gone when the process ends.
//
// What all clients together make the broker keep has a limit too, [Options].MaxBytes. Beyond
// it, who asks for more gets 0x97.
//
// The tests name the sections of the standard that they hold the package to.
package broker
