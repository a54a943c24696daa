package redis

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

// Limits on the commands that a transaction queues before EXEC.
const (
	maxAtomic      = 1 << 17 // arguments; also of an MSET. Other clients wait until EXEC or MSET ends
	maxQueuedBytes = 1 << 30 // bytes of arguments
)

// queued is a command that waits for EXEC.
type queued struct {
	cmd  *command
	args [][]byte
}

// enqueue queues a command for EXEC. It copies the arguments, whose buffer is reused.
func (c *conn) enqueue(cmd *command, args [][]byte) error {
	size := sizeOf(args)
	c.queuedArgs += len(args)
	if c.queuedArgs > maxAtomic || c.queuedBytes+size > maxQueuedBytes {
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
	c.multi, c.abort, c.queue, c.queuedBytes, c.queuedArgs = false, false, nil, 0, 0
	c.waiting.Store(-1)
	c.unwatch()
}

func runDiscard(c *conn, _ [][]byte) error {
	if !c.multi {
		return &Error{Text: "DISCARD without MULTI"}
	}
	c.discard()
	return c.reply(replyOK)
}

func runExec(c *conn, _ [][]byte) error {
	switch {
	case !c.multi:
		return &Error{Text: "EXEC without MULTI"}
	case c.abort:
		c.discard()
		return &Error{Code: "EXECABORT", Text: "Transaction discarded because of previous errors."}
	case c.dirty.Load():
		c.discard()
		c.nullArray()
		return nil
	}
	queue, mark := c.queue, c.mark
	c.discard()
	c.array(len(queue))
	c.executing, c.looked = true, 0
	for _, q := range queue {
		c.mark = len(c.w)
		c.execute(q.cmd, q.args)
		c.boundTransaction()
	}
	c.mark, c.executing = mark, false
	return nil
}

// boundTransaction drops the replies of a transaction if they are too large, because they cannot be
// sent in parts. The connection is then closed after the transaction.
func (c *conn) boundTransaction() {
	if len(c.w) > maxPending {
		if !c.last {
			c.s.log.Warn("closing a client whose transaction has too large a reply", "client", c.who.ID)
		}
		c.w, c.mark, c.muteFrom, c.last = nil, 0, 0, true
	}
}

func runWatch(c *conn, args [][]byte) error {
	if c.multi {
		return &Error{Text: "WATCH inside MULTI is not allowed"}
	}
	if err := c.s.local.Check(&c.who, opPerKey(Get, args[1:])); err != nil {
		return err
	}
	for _, key := range args[1:] {
		name := string(key)
		if _, had := c.watched[name]; had {
			continue
		}
		if c.watched == nil {
			c.watched = make(map[string]struct{})
		}
		c.watched[name] = struct{}{}
		c.nameBytes += len(name) + nameCost
		if c.s.watched[name] == nil {
			c.s.watched[name] = make(map[*conn]struct{})
		}
		c.s.watched[name][c] = struct{}{}
	}
	return c.reply(replyOK)
}

func runUnwatch(c *conn, _ [][]byte) error {
	c.unwatch()
	return c.reply(replyOK)
}

// unwatch forgets the watched keys.
func (c *conn) unwatch() {
	if len(c.watched) == 0 && !c.dirty.Load() {
		return // nothing is watched, or the store is remote
	}
	if !c.locked {
		c.s.local.Lock()
		defer c.s.local.Unlock()
	}
	for key := range c.watched {
		c.nameBytes -= len(key) + nameCost
		delete(c.s.watched[key], c)
		if len(c.s.watched[key]) == 0 {
			delete(c.s.watched, key)
		}
	}
	c.watched = nil
	c.dirty.Store(false)
}
