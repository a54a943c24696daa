package redis

import (
	"net"
)

func multiCommands() []*command {
	const flags = noScript | loadingOK | staleOK | atOnce | needsLocal
	return []*command{
		{name: "multi", arity: 1, flags: flags | fast, run: runMulti, since: "1.2.0", summary: "Mark the start of a transaction block"},
		{name: "exec", arity: 1, flags: flags | usesStore, run: runExec, since: "1.2.0", summary: "Execute all commands issued after MULTI"},
		{name: "discard", arity: 1, flags: flags | fast, run: runDiscard, since: "2.0.0", summary: "Discard all commands issued after MULTI"},
		{name: "watch", arity: -2, flags: flags | fast | usesStore, keys: allKeys, run: runWatch, since: "2.2.0", args: "key:key...", summary: "Watch the given keys to determine execution of the MULTI/EXEC block"},
		{name: "unwatch", arity: 1, flags: (flags | fast | usesStore) &^ atOnce, run: runUnwatch, since: "2.2.0", summary: "Forget about all watched keys"},
	}
}

// Limits on a transaction, because other clients wait until EXEC ends. Sizes are in bytes.
const (
	maxAtomic      = 1 << 15         // number of arguments of a single MSET
	maxQueuedBytes = 1 << 30         // size of the arguments
	maxQueued      = 11 << 17 * word // estimated memory of the commands and arguments, without their bytes
	maxWritten     = 32 << 20        // size of the values that the commands write
	maxReplies     = 32 << 20        // size of the replies
	replyCost      = 32              // maximum size of a reply besides its value
)

// queued is a command that waits for EXEC.
type queued struct {
	cmd  *command
	args [][]byte
}

// queueCost returns the estimated memory of the queued commands, in bytes.
func (c *conn) queueCost() int {
	return c.queuedBytes + argCost*c.queuedArgs + queuedCost*len(c.queue)
}

// enqueue queues a command for EXEC. It copies the arguments, because their buffer is reused.
func (c *conn) enqueue(cmd *command, args [][]byte) error {
	size := sizeOf(args)
	c.queuedArgs += len(args)
	if c.queueCost()-c.queuedBytes > maxQueued || c.queuedBytes+size > maxQueuedBytes {
		c.abort = true
		return &Error{Text: "the transaction is too large"}
	}
	c.queue = append(c.queue, queued{cmd, cloneArgs(args, size)})
	c.queuedBytes += size
	c.waiting.Store(int64(len(c.queue)))
	return c.reply(status("QUEUED"))
}

func runMulti(c *conn, _ [][]byte) error {
	if c.multi {
		return &Error{Text: "MULTI calls can not be nested"}
	}
	c.multi = true
	c.waiting.Store(0)
	return c.reply(replyOK)
}

// discard ends the transaction and forgets the watched keys.
func (c *conn) discard() {
	c.endQueue()
	c.unwatch()
}

// endQueue ends the transaction that MULTI began, and drops the queued commands.
func (c *conn) endQueue() {
	c.multi, c.abort, c.queue, c.queuedBytes, c.queuedArgs = false, false, nil, 0, 0
	c.waiting.Store(-1)
}

func runDiscard(c *conn, _ [][]byte) error {
	if !c.multi {
		return &Error{Text: "DISCARD without MULTI"}
	}
	c.discard()
	return c.reply(replyOK)
}

func runExec(c *conn, _ [][]byte) error {
	c.makeRoomForReplies()
	switch {
	case !c.multi:
		return &Error{Text: "EXEC without MULTI"}
	case c.abort:
		c.discard()
		return &Error{Code: "EXECABORT", Text: "Transaction discarded because of previous errors."}
	case c.dirty.Load():
		c.discard()
		c.unmet = "a watched key changed"
		c.nullArray()
		return nil
	}
	queue, mark := c.queue, c.mark
	c.messages = c.queuedArgs
	c.endQueue()
	c.array(len(queue))
	c.executing, c.looked, c.written = true, 0, 0
	for _, q := range queue {
		c.mark = len(c.w)
		c.execute(q.cmd, q.args)
		c.boundTransaction()
	}
	c.mark, c.executing, c.messages = mark, false, 0
	if c.dropped {
		c.w, c.mark = nil, 0 // also drop the replies that followed the dropped ones
	}
	if c.holds {
		c.holds = false
		c.commit() // before the messages and replies of later commands
	}
	c.unwatch()
	return nil
}

var errManyWritten = &Error{Text: "the transaction would write more than 32 MiB of values"}

// mayWrite counts n more bytes of values that the running transaction writes. It returns an error if the
// total exceeds maxWritten. Outside a transaction, mayWrite does nothing.
func (c *conn) mayWrite(n int) error {
	if !c.executing || n == 0 {
		return nil
	}
	if c.written += n; c.written > maxWritten {
		return errManyWritten
	}
	return nil
}

// makeRoomForReplies grows c.w by the estimated size of the replies to the queued commands, if the
// size is at least maxSpare. It unlocks the Local meanwhile, because allocating much memory takes
// long. It looks at no more keys than a transaction may.
func (c *conn) makeRoomForReplies() {
	if !c.multi || c.abort || c.dirty.Load() {
		return // EXEC runs no command
	}
	size, looked := 0, 0
count:
	for _, q := range c.queue {
		for key := range q.cmd.keysOf(q.args) {
			if looked++; looked > maxLooked || size == maxReplies {
				break count
			}
			if op, err := c.lookup(key); err == nil {
				size = min(size+len(op.Entry.Value)+replyCost, maxReplies)
			}
		}
	}
	if size < maxSpare {
		return
	}
	c.unlock()
	w := make([]byte, len(c.w), len(c.w)+size) // slices.Grow would clear it all in one call, which stops the whole program
	copy(w, c.w)
	c.w = w
	const page = 4 << 10
	for i := len(c.w); i < cap(c.w); i += page {
		c.w[:cap(c.w)][i] = 0
	}
	c.lock()
}

// boundTransaction drops the replies to a transaction if they exceed maxReplies, because they cannot be
// sent in parts. The connection is then closed after the transaction.
func (c *conn) boundTransaction() {
	if len(c.w) > maxReplies {
		c.dropTransaction()
	}
}

// dropTransaction drops the replies to a transaction, and makes the connection close after the transaction.
func (c *conn) dropTransaction() {
	if !c.dropped {
		c.s.log.Warn("closing a client whose transaction has too large a reply", "client", c.who.ID)
	}
	c.w, c.mark, c.muteFrom, c.last, c.dropped = nil, 0, 0, true, true
}

func runWatch(c *conn, args [][]byte) error {
	if c.multi {
		return &Error{Text: "WATCH inside MULTI is not allowed"}
	}
	if err := c.checkKeys(Get, args[1:]); err != nil {
		return err
	}
	for i, key := range args[1:] {
		if err := c.growNames(i); err != nil {
			return err
		}
		if len(key) > maxKey {
			continue // no client can change it
		}
		c.watch(string(key))
	}
	return c.reply(replyOK)
}

// watch adds a watched key. The Local is locked.
func (c *conn) watch(name string) {
	if _, had := c.watched[name]; had {
		return
	}
	if c.watched == nil {
		c.watched = make(map[string]struct{})
	}
	c.watched[name] = struct{}{}
	c.nameBytes += len(name) + watchedCost
	if c.s.watched.M[name] == nil {
		c.s.watched.Set(name, make(map[*conn]struct{}))
	}
	c.s.watched.M[name][c] = struct{}{}
}

func runUnwatch(c *conn, _ [][]byte) error {
	c.unwatch()
	return c.reply(replyOK)
}

// growNames must be called before a command adds its i-th name to the subscriptions or the watched
// keys. For every 64th name, it lets other clients use the Local, and returns an error if the
// connection is closed or the memory for clients is exhausted.
func (c *conn) growNames(i int) error {
	if i%64 != 63 {
		return nil
	}
	c.letOthersIn()
	switch {
	case c.out.closed.Load():
		return net.ErrClosed
	case !c.chargeInput(len(c.in.buf)):
		return errMemory
	}
	return nil
}

// unwatch forgets the watched keys. If there are many, other clients may use the Local meanwhile.
func (c *conn) unwatch() {
	if len(c.watched) == 0 && !c.dirty.Load() {
		return // nothing is watched, or the store is remote
	}
	if !c.locked {
		c.lock()
		defer c.unlock()
	}
	n := 0
	for key := range c.watched {
		if n++; n%64 == 0 {
			c.letOthersIn()
		}
		c.nameBytes -= len(key) + watchedCost
		delete(c.s.watched.M[key], c)
		if len(c.s.watched.M[key]) == 0 {
			c.s.watched.Delete(key)
		}
	}
	c.watched = nil
	c.dirty.Store(false)
}
