package broker

import (
	"math"
	"time"
)

// Limits bound the resources that clients can use on a [Broker]. A zero field means its default.
// Byte counts except MaxPacketSize are approximate: they include an estimate of the broker's own
// structures.
type Limits struct {
	// ReceiveMaximum is the number of messages with QoS 1 and 2 that a client may send before
	// they are acknowledged. An MQTT 5 client that sends more is disconnected with 0x93.
	// Default: 1024.
	ReceiveMaximum uint16

	// MaxPacketSize is the largest packet that a client may send, in bytes. A client that
	// sends a larger one is disconnected with 0x95. Default: only MQTT's own limit.
	MaxPacketSize uint32

	// TopicAliasMaximum is the number of topic aliases that a client may define. Default: 64.
	TopicAliasMaximum uint16

	// KeepAlive is the longest Keep Alive, rounded down to whole seconds, but at least 1 s and at
	// most 65535 s. If an MQTT 5 client asks for more, or for none, CONNACK tells it to use
	// KeepAlive. Default: no limit.
	KeepAlive time.Duration

	// Outbox is the number of packets that may wait to be sent to a connected client. OutboxBytes
	// limits their memory together with the client's unacknowledged messages. A client that exceeds
	// either is disconnected with 0x97. Defaults: 262144, which has room for all retained messages,
	// and 256 MiB.
	Outbox, OutboxBytes int

	// Queue is the number of messages kept for a session whose client is away, and QueueBytes their
	// size. Once either is reached, publishers of further messages get 0x97. Defaults: 65536, 64
	// MiB.
	Queue, QueueBytes int

	// MaxSessions is the number of sessions, whether their clients are connected or away. At the
	// limit, a CONNECT that needs a new session ends a session whose client is away: one of the
	// user with the most sessions, or else one of its own user. If there is none, the CONNECT is
	// refused with 0x97. Default: 100000.
	MaxSessions int

	// MaxSubscriptions is the number of subscriptions in one session. Further topic filters get
	// 0x97 in SUBACK. Default: 10000.
	MaxSubscriptions int

	// MaxRetained is the number of retained messages, and MaxRetainedBytes their size. If a
	// message would exceed either, its publisher gets 0x97. Defaults: 100000, 256 MiB.
	MaxRetained, MaxRetainedBytes int

	// MaxBytes is the memory that all clients together may occupy: sessions, subscriptions,
	// messages, and packets in transit. When it is exhausted, CONNECT, SUBSCRIBE and messages that
	// the broker would have to keep get 0x97, and a client that needs more memory than its share is
	// disconnected with 0x97. Default: 1 GiB.
	MaxBytes int
}

func (l *Limits) setDefaults() {
	if l.ReceiveMaximum == 0 {
		l.ReceiveMaximum = 1024
	}
	if l.KeepAlive > 0 {
		l.KeepAlive = min(max(l.KeepAlive.Truncate(time.Second), time.Second), math.MaxUint16*time.Second)
	}
	if l.TopicAliasMaximum == 0 {
		l.TopicAliasMaximum = 64
	}
	for _, d := range []struct {
		limit *int
		value int
	}{
		{&l.Outbox, 1 << 18}, {&l.OutboxBytes, 256 << 20},
		{&l.Queue, 1 << 16}, {&l.QueueBytes, 64 << 20},
		{&l.MaxSessions, 100_000}, {&l.MaxSubscriptions, 10_000},
		{&l.MaxRetained, 100_000}, {&l.MaxRetainedBytes, 256 << 20},
		{&l.MaxBytes, 1 << 30},
	} {
		if *d.limit <= 0 {
			*d.limit = d.value
		}
	}
}
