// Package broker is an MQTT broker for MQTT 5 and MQTT 3.1.1. It knows no state store. Messages to
// one topic, [Options].Topic, can go to a handler instead of subscribers; package emulator makes
// its store that handler.
//
// Call [New], and then [Broker.Serve] for each listener:
//
//	b := broker.New(broker.Options{})
//	ln, err := net.Listen("tcp", "127.0.0.1:1883")
//	…
//	b.Serve(ln)
//	defer b.Close()
//
// # One lock
//
// A Broker is a [sync.Locker]. It handles and queues every packet while it is locked, so that all
// clients see changes in one order. A connection's goroutine holds the lock while it handles the
// complete packets of one read: at most 64 KiB, or one packet that is larger. Unlock sends the
// queued packets, with one write for each client. Callbacks run with the lock held unless their
// comment says otherwise. They may call the methods that require the lock, and must not block.
//
// # Delivery
//
// Each client has one outbox. A client whose outbox is full is disconnected with 0x97 (Quota
// exceeded). No message is dropped silently, except one that exceeds the client's Maximum Packet
// Size [MQTT-3.1.2-24] or whose Message Expiry Interval has passed.
//
// A session whose client is away keeps its messages in order, except those with QoS 0. If it has
// no room, the publisher gets PUBACK or PUBREC 0x97. Sessions and messages end with the process.
//
// A client that connects with the id of a connected one takes its session over. The broker first
// handles what the old connection had sent, and then disconnects it with 0x8E.
//
// [Limits] bounds each of these, and the memory of all clients together.
//
// The tests cite the sections of the standard that they check.
package broker
