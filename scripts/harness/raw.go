package harness

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/eclipse/paho.golang/packets"
)

const (
	maxPacket = 1 << 16 // largest packet that a Raw can receive, in bytes

	publishType = packets.PUBLISH << 4
	pubackType  = packets.PUBACK << 4
)

// A Raw is an MQTT connection that sends prepared packets and hardly examines what it
// receives, so that a benchmark measures the server and not the client. For the same reason its
// reads and writes block the thread: they don't pass through Go's network poller.
type Raw struct {
	conn     *os.File
	buf      []byte
	from, to int    // the unread bytes in buf
	acks     []byte // PUBACKs to send with the next packets
}

// DialRaw connects to a broker, and subscribes to topic unless it is empty.
func DialRaw(address, id, topic string) (*Raw, error) {
	conn, err := dialBlocking(address)
	if err != nil {
		return nil, err
	}
	c := &Raw{conn: conn, buf: make([]byte, 2*maxPacket)}
	var hello bytes.Buffer
	connect := packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: id, CleanStart: true, Properties: &packets.Properties{}}
	_, err = connect.WriteTo(&hello)
	answers := 1
	if topic != "" {
		subscribe := packets.Subscribe{PacketID: 1, Subscriptions: []packets.SubOptions{{Topic: topic, QoS: 1}}, Properties: &packets.Properties{}}
		_, failed := subscribe.WriteTo(&hello)
		err = errors.Join(err, failed)
		answers++
	}
	if err == nil {
		_, err = conn.Write(hello.Bytes())
	}
	for ; err == nil && answers > 0; answers-- {
		_, _, err = c.next()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func dialBlocking(address string) (*os.File, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // file has its own descriptor
	file, err := conn.(*net.TCPConn).File()
	if err == nil {
		file.Fd() // selects blocking mode
	}
	return file, err
}

// Send writes packets, after the PUBACKs that are due, in one write.
func (c *Raw) Send(packets []byte) error {
	c.acks = append(c.acks, packets...)
	_, err := c.conn.Write(c.acks)
	c.acks = c.acks[:0]
	return err
}

// Await reads PUBACKs and PUBLISHes, in any order, until it has the given number of each. acks is
// the number of PUBACKs. Each PUBLISH must end with the bytes of ending.
func (c *Raw) Await(acks, messages int, ending string) error {
	for acks > 0 || messages > 0 {
		kind, body, err := c.next()
		if err != nil {
			return err
		}
		switch kind & 0xf0 {
		case pubackType:
			if len(body) > 2 && body[2] >= 0x80 {
				return fmt.Errorf("PUBACK with reason 0x%02x", body[2])
			}
			acks--
		case publishType:
			if !bytes.HasSuffix(body, []byte(ending)) {
				return fmt.Errorf("got %q, want it to end with %q", body, ending)
			}
			if kind&0x06 != 0 {
				id := body[2+binary.BigEndian.Uint16(body):]
				c.acks = append(c.acks, pubackType, 2, id[0], id[1])
			}
			messages--
		default:
			return fmt.Errorf("got packet 0x%02x: %q", kind, body)
		}
	}
	return nil
}

// next returns the first byte and the body of the next packet. The body is valid until the next
// call. To use less CPU than the server that is measured, next allocates no memory.
func (c *Raw) next() (byte, []byte, error) {
	for {
		in := c.buf[c.from:c.to]
		if len(in) > 1 {
			size, n := binary.Uvarint(in[1:]) // MQTT's lengths have the same encoding
			if n < 0 || size > maxPacket {
				return 0, nil, fmt.Errorf("packet of %d bytes", size)
			}
			if end := 1 + n + int(size); n > 0 && end <= len(in) {
				c.from += end
				return in[0], in[1+n : end], nil
			}
		}
		c.from, c.to = 0, copy(c.buf, in)
		n, err := c.conn.Read(c.buf[c.to:])
		c.to += n
		if n == 0 {
			return 0, nil, err
		}
	}
}

// Close ends the connection.
func (c *Raw) Close() error { return c.conn.Close() }
