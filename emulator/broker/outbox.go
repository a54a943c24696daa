package broker

import (
	"encoding/binary"
	"time"
)

// A client's outbox is bytes: whole packets in the order of sending. The goroutine that
// sets writing takes them out of it, and owns flight until all is written. That is the
// goroutine that unlocks the broker, as long as the socket takes the bytes at once. If it
// does not, it is the client's writer.

// begin returns the outbox for a packet of that size to be appended.
func (c *Client) begin(size int) []byte {
	c.touch()
	c.waiting++
	c.queue(size)
	c.b.stats.BytesSent += uint64(size)
	return c.out
}

// touch has Unlock look at the outbox.
func (c *Client) touch() {
	if !c.dirty {
		c.dirty = true
		c.b.dirty = append(c.b.dirty, c)
	}
}

// full reports whether nothing more may wait for the client.
func (c *Client) full() bool {
	n, bytes := c.waiting, c.holds()
	if s := c.session; s != nil {
		n += s.pending.len()
	}
	return n >= c.b.opts.Outbox || bytes >= c.b.opts.OutboxBytes || c.greedy(bytes)
}

// room reports whether another packet may wait for the client, which is disconnected if
// not. Answers to the client's own packets need it too: a client that only writes, and
// never reads, must not fill the memory.
func (c *Client) room() bool {
	if c.ending {
		return false
	}
	if c.full() {
		c.drop()
		c.end(QuotaExceeded, "the client does not read fast enough")
		return false
	}
	return true
}

// drop empties the outbox but for a CONNACK, which comes before any other packet
// [MQTT-3.2.0-1].
func (c *Client) drop() {
	c.queue(c.connack - len(c.out))
	c.out = c.out[:c.connack]
	c.waiting = 0
}

// ack appends a PUBACK, PUBREC, PUBREL or PUBCOMP.
func (c *Client) ack(kind byte, id uint16, code byte) {
	if !c.room() {
		return
	}
	first := kind << 4
	if kind == typePubrel {
		first |= 2
	}
	if code == Success || c.Version == version4 {
		c.out = append(c.begin(4), first, 2, byte(id>>8), byte(id))
		return
	}
	c.out = append(c.begin(5), first, 3, byte(id>>8), byte(id), code)
}

// packet appends any other packet: its first byte and its body. One that the client is
// too small for is left out, which only a client that is not serious asks for.
func (c *Client) packet(first byte, body []byte) {
	if !c.room() {
		return
	}
	size := 1 + varintLength(len(body)) + len(body)
	if c.maxPacket > 0 && size > c.maxPacket { // [MQTT-3.1.2-24]
		c.end(packetTooLarge, "")
		return
	}
	out := append(c.begin(size), first)
	out = binary.AppendUvarint(out, uint64(len(body)))
	c.out = append(out, body...)
}

// disconnectPacket appends a DISCONNECT. The reason in words is for people.
func (c *Client) disconnectPacket(code byte, why string) {
	body := []byte{code}
	if why != "" && (c.maxPacket == 0 || len(why)+10 < c.maxPacket) {
		props := appendString([]byte{propReasonString}, why)
		body = append(binary.AppendUvarint(body, uint64(len(props))), props...)
	}
	c.out = binary.AppendUvarint(append(c.out, typeDisconnect<<4), uint64(len(body)))
	c.out = append(c.out, body...)
	c.b.stats.BytesSent += uint64(len(body) + 2)
}

// load takes what is in the outbox for writing.
func (c *Client) load() {
	c.flight, c.out = c.out, c.spare[:0]
	c.unwritten, c.spare = c.flight, nil
	c.waiting, c.connack = 0, 0
}

// keepBuffer is the size up to which a buffer is used again.
const keepBuffer = 256 << 10

// unload gives back the buffer that was written.
func (c *Client) unload() {
	c.queue(-len(c.flight))
	if cap(c.flight) <= keepBuffer {
		c.spare = c.flight[:0]
	}
	c.flight, c.unwritten = nil, nil
}

// direct reports whether Unlock may write by itself.
func (c *Client) direct() bool { return c.fast != nil && !c.ending && !c.cutOff }

// handOver has the writer write.
func (c *Client) handOver() {
	c.turn = true
	c.ready.Signal()
}

// writeDirect writes as much as the socket takes at once.
func (c *Client) writeDirect() {
	n, err := c.fast.write(c.unwritten)
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.unwritten = c.unwritten[n:]
	switch {
	case err != nil || len(c.unwritten) > 0: // the writer will meet the same error
		c.handOver()
	case len(c.out) > 0 || c.ending || c.cutOff:
		c.unload()
		c.handOver()
	default:
		c.unload()
		c.writing = false
	}
}

const (
	// drain is how long a closing connection has for what is in its outbox.
	drain = time.Second

	// linger is how long a closed connection waits for the client to close its side, or to send
	// more, but not longer than lingerMost. Without, a client that was still sending would get a
	// reset, which can overtake the DISCONNECT.
	linger     = 200 * time.Millisecond
	lingerMost = 5 * time.Second
)

// writeLoop is the client's writer.
func (c *Client) writeLoop() {
	b := c.b
	b.mu.Lock()
	defer b.Unlock()
	for {
		for !c.turn && !c.cutOff {
			c.ready.Wait()
		}
		c.turn = false
		for len(c.unwritten) > 0 || len(c.out) > 0 {
			if c.cutOff {
				return
			}
			if len(c.unwritten) == 0 {
				c.load()
			}
			unwritten := c.unwritten
			b.mu.Unlock()
			_, err := c.nc.Write(unwritten)
			b.mu.Lock()
			c.unload()
			if err != nil {
				c.ended.Why = whyLost(err)
				c.cut()
				return
			}
		}
		if c.cutOff {
			return
		}
		if c.ending {
			b.mu.Unlock()
			c.goodbye()
			b.mu.Lock()
			return
		}
		c.writing = false
	}
}
