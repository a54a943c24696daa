package broker

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/socket"
)

// An Identity says who a client is. Its session keeps the Identity while the client is away.
type Identity struct {
	ID       string // does not change
	Username string // as verified by the login, see [Verdict]; empty = none; AUTH may change it

	// Value is for the broker's owner. The broker does not use it.
	Value any
}

// A Client is one client connection. Its methods require the broker's lock.
type Client struct {
	*Identity
	Version byte // protocol version: 5 for MQTT 5, 4 for MQTT 3.1.1; does not change after CONNECT

	b    *Broker
	nc   net.Conn
	raw  net.Conn     // below TLS and WebSocket; its Close sends nothing and does not block
	fast *socket.Conn // nil = not a plain TCP connection
	tls  *tls.Conn    // nil = no TLS
	ws   *webSocket   // nil = not a WebSocket

	ticket     *admission.Ticket
	session    *session // nil = before CONNECT is accepted and after the connection ended
	login      *Login   // nil = before CONNECT
	connect    *connectPacket
	challenged bool          // AUTH 0x18 was sent, and the client has not replied
	keepAlive  time.Duration // 0 = none
	lastRead   time.Time     // when the last whole packet was read

	// The outbox, see outbox.go.
	parts      []part // bytes to be sent before out, see share
	out        []byte // packets to be sent
	waiting    int    // number of packets that begin in parts and out
	begun      int    // number of packets that begin in out
	connack    int    // length of the CONNACK at the start of parts and out; 0 = there is none
	torn       bool   // the last packet in writing continues in parts or out
	writing    []byte // bytes taken from parts or out; nil = nothing is being written
	unwritten  []byte // the part of writing that is still to be written
	queued     int    // bytes in parts, out and writing together
	charged    int    // memory charged for the outbox, see budget.go
	busy       bool   // a goroutine is writing or was told to write
	direct     bool   // writeDirect is writing; it does not block
	writerTurn bool   // writeLoop must write, see callWriter
	dirty      bool   // in Broker.dirty
	paused     bool   // kept messages wait until the outbox was written
	wake       sync.Cond

	// How the connection ends, see disconnect.go.
	closing    bool      // nothing more is added to the outbox; the rest is sent
	draining   bool      // the time to send the rest has begun
	closed     bool      // nc was closed
	halfClosed time.Time // when the broker closed its side; zero = it has not
	end        End
	takenOver  chan struct{} // closed when c leaves its session; nil = no takeover
	idleReads  int           // consecutive reads without data since takeOver was called

	// Flow control (MQTT 5, 4.9).
	receiveMax int // the client's Receive Maximum
	quota      int // how many more QoS 1 and 2 messages may be sent to the client
	unacked    int // QoS 1 and 2 messages from the client that are not fully acknowledged

	maxPacket   int // the client's Maximum Packet Size; 0 = none
	aliasMax    uint16
	nextAlias   uint16
	aliases     map[string]uint16 // the broker's Topic Aliases, by topic
	aliasTopics []string          // the topics of the broker's Topic Aliases, by alias
	topics      map[uint16][]byte // the client's topics, by Topic Alias

	// Other memory of the connection, in bytes, see budget.go.
	buffered int // the read buffer beyond firstBuffer, once there is a session
	overhead int // the connection itself
	reserved int // the read buffer beyond firstBuffer, before there is a session; reserved with ticket
	aliased  int // the topics in aliases and topics

	// Faults that tests inject, see fault.go.
	cutAfter int           // bytes that are still sent before the connection is cut; 0 = it is not cut
	stalled  chan struct{} // closed when reading goes on; nil = reading; only for the reading goroutine and resumeReads
	resume   *Timer        // closes stalled; nil = reading goes on

	certificates int // memory of the client's certificates, in bytes

	publish Publish // the message that is being handled
}

// Connected reports whether the client has a session and can be sent messages.
func (c *Client) Connected() bool { return c.session != nil }

// Ended returns why the connection ended, or the zero End if it has not ended.
func (c *Client) Ended() End { return c.end }

// LastRead returns when the client's last whole packet was read, or when the client connected if
// there is none yet. The time is from the real clock, so [Broker.Advance] has no effect on it.
func (c *Client) LastRead() time.Time { return c.lastRead }

// Remote returns the client's network address, or an empty string if it is unknown.
func (c *Client) Remote() string {
	if a := c.nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// handle handles a packet. first is the packet's first byte, and body is the rest after the
// Remaining Length.
func (c *Client) handle(first byte, body []byte) *Error {
	kind := first >> 4
	if c.session == nil {
		switch {
		case kind == typeConnect && c.login == nil:
			return c.handleConnect(body)
		case kind == typeAuth && c.challenged:
			return c.handleAuth(body)
		default:
			return violation("another packet than CONNECT before CONNACK") // [MQTT-3.1.0-1], [MQTT-3.1.2-30]
		}
	}
	switch kind {
	case typePublish:
		return c.handlePublish(first, body)
	case typePuback, typePubrec, typePubrel, typePubcomp:
		return c.handleAck(kind, body)
	case typeSubscribe:
		return c.handleSubscribe(body)
	case typeUnsubscribe:
		return c.handleUnsubscribe(body)
	case typePingreq:
		if len(body) > 0 {
			return malformed("PINGREQ has a body")
		}
		c.packet(typePingresp<<4, nil) // [MQTT-3.12.4-1]
		return nil
	case typeDisconnect:
		return c.handleDisconnect(body)
	case typeAuth:
		return c.handleAuth(body)
	default:
		return violation("a second CONNECT") // [MQTT-3.1.0-2]
	}
}
