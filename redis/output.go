package redis

import "sync"

// output is what waits to be sent to a client. Whoever appends to it flushes it or wakes the
// writer.
type output struct {
	mu      sync.Mutex
	wake    sync.Cond
	pending []byte
	spare   []byte // an empty buffer that becomes pending
	writing bool
	writer  bool // a goroutine waits on wake
	closed  bool
}

const (
	// maxPending is how many bytes may wait for a subscriber, as in Redis.
	maxPending = 32 << 20
	// fullOutput is how many bytes of replies make a client wait until it has read them.
	fullOutput = 1 << 20
	// maxSpare is the largest buffer that is reused.
	maxSpare = 256 << 10
)

// commit moves the replies to the output.
func (c *conn) commit() {
	if len(c.w) == 0 {
		return
	}
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pending) == 0 {
		o.pending, c.w = c.w, o.pending[:0]
	} else {
		o.pending = append(o.pending, c.w...)
		c.w = c.w[:0]
	}
	c.mark = 0
}

func (o *output) length() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.pending)
}

// flush writes what is pending, and what is added meanwhile. If another goroutine is writing,
// flush waits until little is left. It returns false if the connection is closed.
func (c *conn) flush() bool {
	c.commit()
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing && len(o.pending) >= fullOutput && !o.closed {
		o.wake.Wait()
	}
	if !o.writing {
		c.writePending()
	}
	return !o.closed
}

// writePending writes until nothing is pending. out.mu is held, except while it writes.
func (c *conn) writePending() {
	o := &c.out
	o.writing = true
	for len(o.pending) > 0 && !o.closed {
		p := o.pending
		o.pending, o.spare = o.spare[:0], nil
		o.mu.Unlock()
		err := c.write(p)
		o.mu.Lock()
		o.closed = o.closed || err != nil
		if cap(p) <= maxSpare {
			o.spare = p[:0]
		}
	}
	o.writing = false
	o.wake.Broadcast()
}

// write writes replies and messages, once the changes that they are about are durable.
func (c *conn) write(p []byte) error {
	if sync := c.s.opts.Sync; sync != nil {
		if err := sync(); err != nil {
			return err
		}
	}
	if c.socket != nil {
		n, err := c.socket.TryWrite(p)
		if err != nil || n == len(p) {
			return err
		}
		p = p[n:]
	}
	_, err := c.nc.Write(p)
	return err
}

// startWriter starts the goroutine that writes messages. It runs from the first subscription
// on.
func (c *conn) startWriter() {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writer {
		o.writer = true
		c.s.running.Go(c.writeMessages)
	}
}

func (c *conn) writeMessages() {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed {
		if len(o.pending) > 0 && !o.writing {
			c.writePending()
			continue
		}
		o.wake.Wait()
	}
}

// close closes the connection, whose goroutines then end.
func (c *conn) close() {
	o := &c.out
	o.mu.Lock()
	o.closed = true
	o.wake.Broadcast()
	o.mu.Unlock()
	_ = c.nc.Close() // the client is told nothing more
}

// send sends a message of another client.
func (c *conn) send(message []byte) {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
	case len(o.pending)+len(message) > maxPending:
		o.closed, o.pending = true, nil
		o.wake.Broadcast()
		// Close may block on a TLS connection whose peer does not read.
		c.s.running.Go(func() {
			c.s.log.Warn("closing a subscriber that reads too slowly", "client", c.who.ID, "pending", maxPending)
			c.close()
		})
	default:
		o.pending = append(o.pending, message...)
		o.wake.Broadcast()
	}
}
