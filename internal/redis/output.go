package redis

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// An output holds the bytes that wait to be sent to a client. A goroutine that appends to pending must
// then call conn.flush or wake conn.writeMessages.
type output struct {
	mu      sync.Mutex
	wake    sync.Cond
	pending sequence
	spare   []byte      // an empty buffer that will become pending
	partial bool        // the last reply in pending is incomplete, or a transaction subscribed
	held    sequence    // messages that must follow the incomplete reply
	writing bool        // a goroutine is writing
	writer  bool        // writeMessages is running
	closed  atomic.Bool // set with mu locked
	sending int         // capacity of the buffer that is being written
	waiting int         // size of the replies that wait for earlier replies of a pipeline
	charged charge      // for the buffers, sending and waiting
}

// A sequence is bytes in parts. Outputs share the long parts of a message, because other clients wait while they are copied.
type sequence struct {
	parts  [][]byte // not empty, and not changed any more
	size   int      // bytes in parts
	memory int      // memory of parts
	last   []byte   // follows parts
}

func (q *sequence) len() int { return q.size + len(q.last) }

func (q *sequence) cap() int { return q.memory + cap(q.last) }

// add adds a message, which it copies, except for the long parts of its rest.
func (q *sequence) add(message []byte, rest [][]byte) {
	q.copy(message)
	for _, part := range rest {
		if len(part) >= costlyValue {
			q.share(part)
		} else {
			q.copy(part)
		}
	}
}

// copy adds a copy of a part. A long buffer does not grow, but becomes a part: for a client that does not read, up to
// maxPending bytes would be copied again and again.
func (q *sequence) copy(part []byte) {
	if last := q.last; len(last) >= maxPart && len(last)+len(part) > cap(last) {
		q.last = nil
		q.share(last)
		q.last = make([]byte, 0, max(len(part), 2*maxPart))
	}
	q.last = append(q.last, part...)
}

// share adds a part without copying it.
func (q *sequence) share(part []byte) {
	if len(q.last) > 0 {
		last := q.last
		q.last = nil
		q.share(last)
	}
	q.parts = append(q.parts, part)
	q.size += len(part)
	q.memory += cap(part)
}

func (q *sequence) next() []byte {
	part := q.parts[0]
	q.parts[0] = nil // for the garbage collector
	q.parts = q.parts[1:]
	q.size -= len(part)
	q.memory -= cap(part)
	return part
}

func newOutput(reserve func(n int) bool) *output {
	o := &output{charged: charge{reserve: reserve}}
	o.wake.L = &o.mu
	return o
}

const (
	// maxPending is the maximum number of bytes that may wait to be sent to a subscriber when a message comes, as in
	// Redis.
	maxPending = 32 << 20
	// fullOutput limits the replies that wait to be written, in bytes. When they reach the limit, they are
	// written before the next request runs or the reply to the current one continues.
	fullOutput = 1 << 20
	// maxSpare is the size of the largest buffer, in bytes, that an idle client keeps.
	maxSpare = 32 << 10
	// maxBusySpare is the size of the largest buffer, in bytes, that is reused after a write.
	maxBusySpare = 1 << 20
	// A client is disconnected if a write of maxPart bytes or less takes longer than maxStall.
	maxStall = time.Minute
	maxPart  = 64 << 10
	// maxHead is the number of bytes that are kept for Options.Observe from the beginning of a reply, if
	// the reply is sent in parts.
	maxHead = 64
)

// commit moves the replies in c.w to the output, or drops them if the connection is closed.
func (c *conn) commit() {
	if c.muted {
		c.unmute() // drop the replies of the running command now, and its later replies too
		defer c.mute()
	}
	if len(c.w) == 0 && !c.partial {
		return
	}
	o := c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	c.partial = c.sentHead != nil
	o.partial = c.partial
	if o.closed.Load() {
		c.w = nil
	} else if len(o.pending.last) == 0 {
		o.pending.last, c.w = c.w, o.pending.last[:0]
	} else {
		o.pending.copy(c.w)
		c.w = idle(c.w[:0])
	}
	if held := o.held; !o.partial && held.len() > 0 {
		o.held = sequence{}
		for _, part := range held.parts {
			o.pending.share(part)
		}
		o.pending.copy(held.last)
	}
	c.mark = 0
	if !o.charge() {
		c.drop("closing a client because the memory for clients is exhausted")
	}
}

// holdMessages makes messages wait until commit is called: a transaction that has subscribed to a channel is running, and
// its replies are incomplete.
func (c *conn) holdMessages() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.partial, c.out.partial = true, true
}

// charge updates o.charged. It returns false if the memory for clients is exhausted. o.mu is held.
func (o *output) charge() bool {
	return o.charged.set(max(0, o.pending.cap()+cap(o.spare)+o.held.cap()+o.sending+o.waiting-freeOutput))
}

// affords reports whether the memory for clients has room for a reply of n bytes. If not, it drops the
// connection.
func (c *conn) affords(n int) bool {
	o := c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	ok := o.charged.set(o.charged.bytes + n)
	if o.charge(); !ok && !o.closed.Load() {
		c.drop("closing a client because the memory for clients is exhausted")
	}
	return ok
}

// awaitTurn waits until the replies of the earlier commands of a pipeline are in the output. Meanwhile
// the replies of this command are charged.
func (c *conn) awaitTurn() {
	if c.turn == nil {
		return
	}
	size := cap(c.w)
	c.wait(size)
	<-c.turn
	c.turn = nil
	c.wait(-size)
}

// wait adds n, which may be negative, to the charged bytes of the replies that wait in awaitTurn.
func (c *conn) wait(n int) {
	o := c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting += n; !o.charge() && !o.closed.Load() {
		c.drop("closing a client because the memory for clients is exhausted")
	}
}

// drop ends the output. In another goroutine, it logs a warning with the given text and closes the
// connection. c.out.mu is held.
func (c *conn) drop(why string) {
	c.out.end()
	// Close may block on a TLS connection whose peer does not read.
	c.s.running.Go(func() {
		c.s.log.Warn(why, "client", c.who.ID)
		c.close()
	})
}

// sendPart sends the replies in c.w if they have at least fullOutput bytes. The last
// reply may be incomplete. While sendPart waits for the client to read, other clients may use the Local.
// sendPart returns false if the connection is closed. In a transaction, it sends nothing.
func (c *conn) sendPart() bool {
	if c.executing {
		c.boundTransaction()
		return true
	}
	if c.large != nil {
		open := c.sendLarge()
		c.lock()
		return open
	}
	if len(c.w) < fullOutput {
		return true
	}
	if c.muted {
		c.w = c.w[:c.muteFrom]
		return true
	}
	c.beginPart()
	open := c.flush()
	c.lock()
	return open
}

// beginPart unlocks the Local, to send a part of a reply.
func (c *conn) beginPart() {
	if c.sentHead == nil {
		c.sentHead = bytes.Clone(c.w[c.mark:min(c.mark+maxHead, len(c.w))])
	}
	c.awaitTurn()
	c.unlock()
}

// sendLarge sends the replies in c.w and the value c.large, which it charges to the client meanwhile, and then the
// messages in c.later. It unlocks the Local. It returns false if the connection is closed.
func (c *conn) sendLarge() bool {
	value := c.large
	c.large = nil
	c.beginPart()
	c.wait(len(value))
	defer c.wait(-len(value))
	for rest := value; len(rest) > 0; {
		n := min(len(rest), maxBusySpare/4)
		c.w = append(c.w, rest[:n]...)
		if rest = rest[n:]; !c.flush() {
			return false
		}
	}
	c.w = append(append(c.w, "\r\n"...), c.later...)
	c.later = idle(c.later[:0])
	return true
}

func (o *output) length() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pending.len()
}

// unsent returns how many bytes wait to be sent, also behind the replies to a transaction.
func (o *output) unsent() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pending.len() + o.held.len()
}

// flush writes all pending bytes, including bytes added while it writes. If another goroutine is
// writing, flush returns as soon as fewer than fullOutput bytes are pending. It returns false if the
// connection is closed.
func (c *conn) flush() bool {
	c.commit()
	o := c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing && o.pending.len() >= fullOutput && !o.closed.Load() {
		o.wake.Wait()
	}
	if !o.writing {
		c.writePending()
	}
	return !o.closed.Load()
}

// finish writes all pending bytes, or waits until another goroutine has written them.
func (c *conn) finish() {
	c.flush()
	o := c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing {
		o.wake.Wait()
	}
}

// writePending writes until nothing is pending or the connection is closed. c.out.mu is held, except during the writes.
func (c *conn) writePending() {
	o := c.out
	o.writing = true
	for o.pending.len() > 0 && !o.closed.Load() {
		shared := len(o.pending.parts) > 0
		p := o.pending.last
		if shared {
			p = o.pending.next()
		} else {
			o.pending.last, o.spare = o.spare[:0], nil
		}
		o.sending = cap(p)
		o.mu.Unlock()
		err := c.write(p)
		o.mu.Lock()
		o.sending = 0
		if err != nil {
			o.end()
		}
		if !shared && cap(p) <= maxBusySpare && !o.closed.Load() {
			o.spare = p[:0]
		}
		o.charge()
	}
	o.spare = idle(o.spare)
	o.pending = sequence{last: idle(o.pending.last)}
	o.charge()
	o.writing = false
	o.wake.Broadcast()
}

// largeSpares holds buffers of more than maxSpare bytes that no client uses. The garbage collector may
// free them.
var largeSpares sync.Pool // of *[]byte

// idle returns an empty buffer of at most maxSpare bytes unchanged, for an idle client to keep. For a larger
// buffer it returns nil, and puts the buffer into largeSpares unless it has more than maxBusySpare bytes.
func idle(buffer []byte) []byte {
	if cap(buffer) <= maxSpare {
		return buffer
	}
	if cap(buffer) <= maxBusySpare {
		largeSpares.Put(&buffer)
	}
	return nil
}

// largeSpare returns an empty buffer from largeSpares, or nil.
func largeSpare() []byte {
	if buffer, ok := largeSpares.Get().(*[]byte); ok {
		return *buffer
	}
	return nil
}

// write writes p, which holds replies and messages, to the connection. It first calls Options.Sync, so
// that the changes that p reports are durable.
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
	for len(p) > 0 {
		if err := c.nc.SetWriteDeadline(time.Now().Add(maxStall)); err != nil {
			return err
		}
		n, err := c.nc.Write(p[:min(len(p), maxPart)])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.s.log.Warn("closing a client that reads nothing", "client", c.who.ID, "for", maxStall)
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return c.nc.SetWriteDeadline(time.Time{}) // otherwise TryWrite would fail after the deadline
}

// startWriter starts the goroutine that writes messages to the client, unless it is already running.
func (c *conn) startWriter() {
	o := c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writer {
		o.writer = true
		c.s.running.Go(c.writeMessages)
	}
}

func (c *conn) writeMessages() {
	o := c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed.Load() {
		if o.pending.len() > 0 && !o.writing {
			c.writePending()
			continue
		}
		o.wake.Wait()
	}
}

// end marks the output as closed and frees its buffers. o.mu is held.
func (o *output) end() {
	o.closed.Store(true)
	o.pending, o.spare, o.held = sequence{}, nil, sequence{}
	o.charge()
	o.wake.Broadcast()
}

// close closes the connection, so that its goroutines end.
func (c *conn) close() {
	o := c.out
	o.mu.Lock()
	o.end()
	o.mu.Unlock()
	_ = c.nc.Close() // an error does not matter: nothing more is sent
}

// send queues a message that does not come from a command of this connection. It does not block. The
// output keeps the long parts of the message's rest, which may be nil.
func (c *conn) send(message []byte, rest [][]byte) {
	o := c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed.Load():
	case o.pending.len()+o.held.len()+len(message)+sizeOf(rest) > maxPending:
		c.drop("closing a subscriber that reads too slowly")
	case o.partial:
		o.held.add(message, rest)
	default:
		if cap(o.pending.last) == 0 && rest == nil {
			o.pending.last = largeSpare()
		}
		o.pending.add(message, rest)
		o.wake.Broadcast()
	}
	if !o.charge() {
		c.drop("closing a subscriber because the memory for clients is exhausted")
	}
}
