// Package broker is a broker for MQTT 5 and MQTT 3.1.1. It does not know about the state store.
// Messages to one topic, [Options].Topic, can go to a handler instead of subscribers; package
// emulator installs its state store as the handler.
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
// complete packets of one read: usually at most 128 KiB, more only if a packet is large. After 2 ms
// of work, or sooner if many wait, it unlocks the broker between two packets. A goroutine with much work
// also stands in a line ([Broker.Line]), so that many of them do not hold up a client that wants little. Unlock sends the queued packets,
// usually with one write for each client. Callbacks run with the lock held unless their comment
// says otherwise. A callback may call methods that require the lock, and must not block.
//
// # Delivery
//
// Each client has one outbox. A client whose outbox is full is disconnected with 0x97 (Quota
// exceeded). No message to a connected client is dropped silently, except one that exceeds the
// client's Maximum Packet Size [MQTT-3.1.2-24] or whose Message Expiry Interval has passed.
//
// A session whose client is away keeps its messages in order, but no messages with QoS 0. If the
// session is full, the publisher gets PUBACK or PUBREC 0x97. Nothing is stored on disk: sessions
// and messages are lost when the process exits.
//
// A client that connects with the client id and user of a connected client takes over that client's
// session. The broker first handles the packets that were already sent on the old connection, and
// then disconnects the old connection with 0x8E.
//
// [Limits] bounds each outbox and session, and the memory of all clients together.
//
// The tests cite the sections of the standard that they check.
package broker
