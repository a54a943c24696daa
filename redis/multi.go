package redis

func transactionCommands() []*command {
	const flags = noScript | loadingOK | staleOK | atOnce | inOneStep
	rows := []*command{
		{name: "multi", arity: 1, flags: flags | fast, run: runMulti, since: "1.2.0", summary: "Mark the start of a transaction block"},
		{name: "exec", arity: 1, flags: flags | usesStore, run: runExec, since: "1.2.0", summary: "Execute all commands issued after MULTI"},
		{name: "discard", arity: 1, flags: flags | fast, run: runDiscard, since: "2.0.0", summary: "Discard all commands issued after MULTI"},
		{name: "watch", arity: -2, flags: flags | fast | usesStore, first: 1, last: -1, step: 1, run: runWatch, since: "2.2.0", args: "key:key...", summary: "Watch the given keys to determine execution of the MULTI/EXEC block"},
		{name: "unwatch", arity: 1, flags: (flags | fast | usesStore) &^ atOnce, run: runUnwatch, since: "2.2.0", summary: "Forget about all watched keys"},
	}
	for _, cmd := range rows {
		cmd.group = "transactions"
	}
	return rows
}

// Limits of a transaction that waits for EXEC: its commands keep their arguments.
const (
	maxQueued      = 1 << 20
	maxQueuedBytes = 1 << 30
)

// enqueue keeps a command for EXEC, if there is room. The arguments are copied: their
// buffer is used again.
func (c *conn) enqueue(cmd *command, args [][]byte) (ok bool) {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	if len(c.queue) == maxQueued || c.queuedBytes+size > maxQueuedBytes {
		return false
	}
	joined, kept := make([]byte, 0, size), make([][]byte, len(args))
	for i, a := range args {
		joined = append(joined, a...)
		kept[i] = joined[len(joined)-len(a) : len(joined) : len(joined)]
	}
	c.queue = append(c.queue, queued{cmd, kept})
	c.queuedBytes += size
	return true
}

func runMulti(c *conn, _ [][]byte) {
	if c.multi {
		c.error("MULTI calls can not be nested")
		return
	}
	c.multi = true
	c.waiting.Store(0)
	c.ok()
}

// discard ends a transaction, and the watching of keys.
func (c *conn) discard() {
	c.multi, c.abort, c.queue, c.queuedBytes = false, false, nil, 0
	c.waiting.Store(-1)
	c.unwatch()
}

func runDiscard(c *conn, _ [][]byte) {
	if !c.multi {
		c.error("DISCARD without MULTI")
		return
	}
	c.discard()
	c.ok()
}

func runExec(c *conn, _ [][]byte) {
	switch {
	case !c.multi:
		c.error("EXEC without MULTI")
		return
	case c.abort:
		c.discard()
		c.fail("EXECABORT Transaction discarded because of previous errors.")
		return
	case c.dirty.Load():
		c.discard()
		c.nullArray()
		return
	}
	queue, mark := c.queue, c.mark
	c.discard()
	c.array(len(queue))
	for _, q := range queue {
		c.begin()
		c.execute(q.cmd, q.args)
	}
	c.mark = mark
}

func runWatch(c *conn, args [][]byte) {
	if c.multi {
		c.error("WATCH inside MULTI is not allowed")
		return
	}
	s := c.s
	for _, key := range args[1:] {
		if _, had := c.watched[string(key)]; had {
			continue
		}
		if c.watched == nil {
			c.watched = make(map[string]struct{})
		}
		c.watched[string(key)] = struct{}{}
		if s.watched[string(key)] == nil {
			s.watched[string(key)] = make(map[*conn]struct{})
		}
		s.watched[string(key)][c] = struct{}{}
	}
	c.ok()
}

func runUnwatch(c *conn, _ [][]byte) {
	c.unwatch()
	c.ok()
}

// unwatch forgets the watched keys.
func (c *conn) unwatch() {
	if c.s.engine == nil {
		return
	}
	if len(c.watched) == 0 && !c.dirty.Load() {
		return
	}
	if !c.locked {
		c.s.engine.Lock()
		defer c.s.engine.Unlock()
	}
	for key := range c.watched {
		delete(c.s.watched[key], c)
		if len(c.s.watched[key]) == 0 {
			delete(c.s.watched, key)
		}
	}
	c.watched = nil
	c.dirty.Store(false)
}
