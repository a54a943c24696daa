package broker

import (
	"slices"
	"time"
)

// A client's outbox, Client.parts and Client.out, holds whole packets in sending order, in blocks, so that nothing that
// waits for a client that does not read is copied again. Only one goroutine at a time writes to a client; meanwhile
// Client.busy is set. The goroutine moves the outbox to Client.writing, which it writes without the lock. For a few plain
// TCP clients, Unlock writes as much as the socket accepts without blocking. The client's writeLoop writes everything else.

// reserve makes room in the outbox for a packet of size bytes, counts the packet as queued, and
// returns the outbox. The caller appends the packet and stores the result in c.out.
func (c *Client) reserve(size int) []byte {
	c.markDirty()
	c.grow(size, false)
	c.waiting++
	c.begun++
	return c.out
}

// grow makes room in c.out for size bytes, which it counts as queued. A full block becomes a part; torn reports whether
// its last packet continues with these bytes.
func (c *Client) grow(size int, torn bool) {
	c.queued += size
	c.b.stats.BytesSent += uint64(size)
	if n := len(c.out); n > 0 && n+size > block && cap(c.out)-n < size {
		c.parts = append(c.parts, part{c.out, torn, c.begun})
		c.out, c.begun = nil, 0
	}
	if c.out == nil {
		if c.out = c.b.takeSpare(); c.out == nil && len(c.parts) > 0 { // more will follow: growing leaves garbage
			c.out = make([]byte, 0, block)
		}
		c.chargeBuffers(cap(c.out))
	}
	before := cap(c.out)
	c.out = slices.Grow(c.out, size)
	c.chargeBuffers(cap(c.out) - before)
}

// block is the size of a block of the outbox in bytes, unless one packet is larger.
const block = 128 << 10

// A part is a part of the outbox before Client.out.
type part struct {
	bytes []byte
	torn  bool // its last packet continues in the next part, or in Client.out
	begun int  // number of packets that begin in it
}

// share appends a value and its end to the outbox, whose last packet has begun. If the value is large, share does not
// copy it: several clients may send the same memory. Each is charged for all of it. A value that free would keep as a buffer
// for others is copied.
func (c *Client) share(value []byte, end string) {
	if len(value) <= maxSpare {
		c.grow(len(value), true)
		c.out = append(c.out, value...)
	} else {
		c.parts = append(c.parts, part{c.out, true, c.begun}, part{slices.Clip(value), end != "", 0})
		c.out, c.begun = nil, 0
		c.queued += len(value)
		c.chargeBuffers(len(value))
		c.b.stats.BytesSent += uint64(len(value))
	}
	if end != "" {
		c.grow(len(end), true)
		c.out = append(c.out, end...)
	}
}

// toSend reports whether the outbox or its unwritten part has bytes.
func (c *Client) toSend() bool { return len(c.unwritten)+len(c.parts)+len(c.out) > 0 }

// markDirty makes the next Unlock send the outbox.
func (c *Client) markDirty() {
	if !c.dirty {
		c.dirty = true
		c.b.dirty = append(c.b.dirty, c)
	}
}

// ensureRoom reports whether the outbox has room for another packet of size bytes. If not, it
// disconnects the client. Replies to the client's own packets need room too: otherwise, a client
// that sends but never reads could exhaust the memory.
func (c *Client) ensureRoom(size int) bool {
	if c.isClosing() {
		return false
	}
	n, bytes := c.waiting, c.outstanding()
	if s := c.session; s != nil {
		n += s.pending.len()
	}
	share := bytes
	if c.fast != nil && (!c.busy || c.direct) { // writeDirect checks the bytes that it cannot write
		share, size = bytes-c.queued, 0
	}
	if n < c.b.opts.Outbox && bytes < c.b.opts.OutboxBytes && !c.overShare(share, size) {
		return true
	}
	if c.torn { // the client would take DISCONNECT for the rest of a packet
		c.end.Why = tooSlow
		c.Cut()
		return false
	}
	// Drop all queued packets except CONNACK, which must precede DISCONNECT [MQTT-3.2.0-1].
	outbox := append(c.parts, part{bytes: c.out})
	c.connack = min(c.connack, len(outbox[0].bytes))
	connack := append(make([]byte, 0, c.connack), outbox[0].bytes[:c.connack]...)
	for _, p := range outbox {
		c.queued -= len(p.bytes)
		c.free(p.bytes)
	}
	c.queued += c.connack
	c.chargeBuffers(c.connack)
	c.parts, c.out = nil, connack
	c.waiting, c.begun = 0, 0
	c.disconnect(QuotaExceeded, tooSlow)
	return false
}

// mustPause reports whether a kept message of size bytes must wait until the outbox was written: if memory is exhausted
// and the outbox would exceed the client's share. Without it, clients that resume their sessions at the same time would
// each queue all messages, of which the sessions share one copy. writeDirect checks plain TCP connections.
func (c *Client) mustPause(size int) bool {
	return c.fast == nil && c.queued > 0 && c.overShare(c.queued, size)
}

const tooSlow = "the client does not read fast enough"

// packet queues a packet. PUBLISH and its acknowledgements have their own functions. If the packet
// exceeds the client's Maximum Packet Size, the client is disconnected with 0x95 [MQTT-3.1.2-24].
func (c *Client) packet(first byte, body []byte) {
	if !c.ensureRoom(len(body)) {
		return
	}
	if !c.accepts(len(body)) {
		c.disconnect(packetTooLarge, "")
		return
	}
	c.queuePacket(first, body)
}

// queuePacket queues a packet without checking its size or the room in the outbox.
func (c *Client) queuePacket(first byte, body []byte) {
	c.out = appendPacket(c.reserve(1+varintLength(len(body))+len(body)), first, body)
}

// takeOutbox moves the first part of the outbox to c.writing.
func (c *Client) takeOutbox() {
	c.connack = 0
	if len(c.parts) > 0 {
		c.writing, c.torn = c.parts[0].bytes, c.parts[0].torn
		c.waiting -= c.parts[0].begun
		c.parts[0] = part{} // for the garbage collector
		c.parts = c.parts[1:]
	} else {
		c.writing, c.out, c.parts, c.torn, c.waiting, c.begun = c.out, nil, nil, false, 0, 0
	}
	c.unwritten = c.writing
	if c.cutAfter > 0 {
		c.unwritten = c.unwritten[:min(c.cutAfter, len(c.unwritten))]
	}
}

// After buffers are written or dropped, some are kept and reused as outboxes of any client. Otherwise clients that are
// disconnected because they do not read, and those that take their place, would leave garbage faster than it is collected.
const (
	maxSpare  = 2 * block // maximum capacity of a buffer that is kept, in bytes
	maxSpares = 32        // maximum number of buffers that are kept
)

// takeSpare returns an empty buffer for an outbox, or nil if none is kept.
func (b *Broker) takeSpare() []byte {
	last := len(b.spares) - 1
	if last < 0 {
		return nil
	}
	spare := b.spares[last]
	b.spares = b.spares[:last]
	return spare
}

// endWrite releases c.writing after it was written.
func (c *Client) endWrite() {
	if c.cutAfter > 0 {
		if c.cutAfter -= len(c.writing); c.cutAfter <= 0 {
			c.Cut()
		}
	}
	c.queued = max(0, c.queued-len(c.writing)) // disconnect does not count DISCONNECT in queued
	c.free(c.writing)
	c.writing, c.unwritten = nil, nil
}

func (c *Client) free(buffer []byte) {
	c.chargeBuffers(-cap(buffer))
	if b := c.b; cap(buffer) > 0 && cap(buffer) <= maxSpare && len(b.spares) < maxSpares {
		b.spares = append(b.spares, buffer[:0])
	}
}

func (c *Client) callWriter() {
	c.writerTurn = true
	c.wake.Signal()
}

// maxDirectWrites is the number of clients to which one Unlock writes on its own goroutine. Unlock
// wakes the writeLoops of the other clients, which write in parallel.
const maxDirectWrites = 4

// Unlock unlocks the broker and sends the queued packets.
func (b *Broker) Unlock() { b.unlock(maxDirectWrites) }

// unlock is like Unlock, but writes to at most limit clients on the calling goroutine.
func (b *Broker) unlock(limit int) {
	var few [maxDirectWrites]directWrite
	direct := few[:0]
	for i, c := range b.dirty {
		b.dirty[i] = nil
		c.dirty = false
		if c.busy {
			continue // the goroutine that is writing checks the outbox again
		}
		c.busy = true
		if len(direct) < limit && c.fast != nil && !c.isClosing() {
			c.takeOutbox()
			c.direct = true
			direct = append(direct, directWrite{Client: c})
			continue
		}
		c.callWriter()
	}
	b.dirty = b.dirty[:0]
	b.readTime = time.Time{}
	b.arm()
	changed, toClose, inLine := b.changed, b.toClose, b.inLine
	b.changed, b.toClose, b.inLine = false, nil, false
	b.mu.Unlock()
	if inLine {
		b.line.Unlock()
	}
	if changed && b.opts.Changed != nil {
		b.opts.Changed()
	}
	if len(direct) > 0 {
		b.writeDirect(direct)
	}
	for _, nc := range toClose {
		_ = nc.Close() // an error means only that the connection is already gone
	}
}

// A directWrite is the write of a client's outbox by the goroutine that unlocks the broker.
type directWrite struct {
	*Client
	n   int // bytes written
	err error
}

// maxDirectParts is the number of parts of an outbox that one Unlock writes on its own goroutine.
const maxDirectParts = 16

// writeDirect writes as much as each socket accepts without blocking. Each client's writeLoop
// writes the rest.
func (b *Broker) writeDirect(direct []directWrite) {
	for parts := 1; len(direct) > 0; parts++ {
		for i := range direct {
			w := &direct[i]
			w.n, w.err = w.fast.TryWrite(w.unwritten)
		}
		more := direct[:0]
		b.Lock()
		for _, w := range direct {
			w.unwritten = w.unwritten[w.n:]
			done := w.err == nil && len(w.unwritten) == 0 // after an error, writeLoop gets the same error
			if done {
				w.endWrite()
			}
			switch {
			case done && !w.isClosing() && len(w.parts) > 0 && parts < maxDirectParts:
				w.takeOutbox()
				more = append(more, w)
				continue
			case done && !w.toSend() && !w.isClosing():
				w.direct, w.busy = false, false
				continue
			case !done && w.err == nil && !w.isClosing() && w.overShare(w.outstanding(), 0):
				w.end.Why = tooSlow // no DISCONNECT: it would be stuck after the unwritten bytes
				w.Cut()
			}
			w.direct = false
			w.callWriter()
		}
		b.mu.Unlock()
		direct = more
	}
}

// writeLoop writes the outbox each time callWriter wakes it. If the connection is closing,
// writeLoop then closes the broker's side and returns.
func (c *Client) writeLoop() {
	if err := c.writeOutboxes(); err != nil {
		c.b.end(ending{c, err, false})
	}
}

// writeOutboxes is writeLoop, but returns the error of a write.
func (c *Client) writeOutboxes() error {
	b := c.b
	b.mu.Lock()
	for {
		for !c.writerTurn && !c.closed {
			c.wake.Wait()
		}
		c.writerTurn = false
		for !c.closed && c.toSend() {
			if len(c.unwritten) == 0 {
				c.takeOutbox()
			}
			if c.closing && !c.draining { // the time since beginClose was the broker's, not the client's
				c.draining = true
				c.limitWrites(drainTimeout)
			}
			unwritten := c.unwritten
			b.mu.Unlock()
			if _, err := c.nc.Write(unwritten); err != nil {
				return err
			}
			b.mu.Lock()
			c.endWrite()
		}
		if c.closed {
			b.Unlock()
			return nil
		}
		if c.closing {
			b.mu.Unlock()
			c.closeWrite()
			return nil
		}
		c.busy = false
		if s := c.session; c.paused && s != nil {
			c.paused = false
			b.later(s.sendPending)
		}
	}
}
