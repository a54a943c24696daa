//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

const (
	maxPacket = 1 << 16 // largest packet that a raw can receive, in bytes

	publishType = packets.PUBLISH << 4
	pubackType  = packets.PUBACK << 4
)

// A raw is an MQTT connection that sends prepared packets and hardly examines what it receives, so that a
// benchmark measures the server and not the client. For the same reason its reads and writes block the thread
// instead of passing through Go's network poller.
type raw struct {
	conn     *os.File
	buf      []byte
	from, to int    // range of the unread bytes in buf
	acks     []byte // PUBACKs to send with the next packets
}

// dialRaw connects to a broker, and subscribes to topic unless it is empty.
func dialRaw(e endpoint, id, topic string) *raw {
	conn := harness.Must(net.Dial("tcp", e.address()))
	file := harness.Must(conn.(*net.TCPConn).File())
	conn.Close() // file has its own descriptor
	file.Fd()    // selects blocking mode
	c := &raw{conn: file, buf: make([]byte, 2*maxPacket)}
	hello := encoded(&packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: id, CleanStart: true, Properties: &packets.Properties{}})
	answers := 1
	if topic != "" {
		hello = append(hello, encoded(&packets.Subscribe{PacketID: 1, Subscriptions: []packets.SubOptions{{Topic: topic, QoS: 1}}, Properties: &packets.Properties{}})...)
		answers++
	}
	harness.Must(c.conn.Write(hello))
	for range answers {
		c.next()
	}
	return c
}

// dialStore is dialRaw for a client that sends requests to the store.
func dialStore(e endpoint) (*raw, *requests) {
	const id = "bench-raw"
	return dialRaw(e, id, wire.ResponseTopic(id)), newRequests(id)
}

func encoded(p io.WriterTo) []byte {
	var b bytes.Buffer
	_, _ = p.WriteTo(&b) // writing to a bytes.Buffer does not fail
	return b.Bytes()
}

// send writes packets, after the PUBACKs that are due, in one write.
func (c *raw) send(packets []byte) {
	c.acks = append(c.acks, packets...)
	harness.Must(c.conn.Write(c.acks))
	c.acks = c.acks[:0]
}

// await reads PUBACKs and PUBLISHes, in any order, until it has the given number of each. acks is
// the number of PUBACKs. Each PUBLISH must end with the bytes of ending.
func (c *raw) await(acks, messages int, ending string) {
	for acks > 0 || messages > 0 {
		kind, body := c.next()
		switch kind & 0xf0 {
		case pubackType:
			if len(body) > 2 && body[2] >= 0x80 {
				harness.Check(fmt.Errorf("PUBACK with reason 0x%02x", body[2]))
			}
			acks--
		case publishType:
			if !bytes.HasSuffix(body, []byte(ending)) {
				harness.Check(fmt.Errorf("got %q, want it to end with %q", body, ending))
			}
			if kind&0x06 != 0 {
				id := body[2+binary.BigEndian.Uint16(body):]
				c.acks = append(c.acks, pubackType, 2, id[0], id[1])
			}
			messages--
		default:
			harness.Check(fmt.Errorf("got packet 0x%02x: %q", kind, body))
		}
	}
}

// next returns the first byte and the body of the next packet. The body is valid until the next
// call. To use less CPU than the server that is measured, next allocates no memory.
func (c *raw) next() (byte, []byte) {
	for {
		in := c.buf[c.from:c.to]
		if len(in) > 1 {
			size, n := binary.Uvarint(in[1:]) // MQTT encodes lengths in the same way
			if n < 0 || size > maxPacket {
				harness.Check(fmt.Errorf("packet of %d bytes", size))
			}
			if end := 1 + n + int(size); n > 0 && end <= len(in) {
				c.from += end
				return in[0], in[1+n : end]
			}
		}
		c.from, c.to = 0, copy(c.buf, in)
		n, err := c.conn.Read(c.buf[c.to:])
		c.to += n
		if n == 0 {
			harness.Check(err)
		}
	}
}
