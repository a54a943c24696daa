package redis

import (
	"bytes"
	"iter"
	"time"
)

// An Intercepted is a command before it runs, for [Server.Intercept].
type Intercepted struct {
	Client   *Caller
	Name     string // of the client, from CLIENT SETNAME
	Verb     string // such as set or config|get
	UsesKeys bool   // it uses the store
	Keys     iter.Seq[[]byte]
}

// A Fault is what happens to a command instead of, or besides, what the client wants. The zero value is nothing.
type Fault struct {
	Drop, DropReply bool // do not run it; do not reply
	Cut, CutAfter   bool // close the connection before or after it runs, without a reply
	Duplicate       bool // reply twice
	CutBytes        int  // close the connection after this many bytes of the reply; 0 = do not
	Error           string

	// On the store's clock: before it runs, before the reply, and before the client's next command is read.
	Delay, DelayReply, Stall time.Duration
}

// HasCommand reports whether Redis clients have a command or a subcommand, such as get or config|get.
func HasCommand(name string) bool {
	t := newTable()
	return t.findFull([]byte(name)) != nil
}

// dispatchFaulty is like dispatch, with the fault that decide returns. It asks only about commands that would run or be
// queued.
func (c *conn) dispatchFaulty(decide func(Intercepted) Fault, args [][]byte) {
	cmd, unknownSub := c.s.table.lookup(args)
	if cmd == nil || c.refusal(cmd, unknownSub, args) != nil {
		c.dispatch(args)
		return
	}
	c.unlock() // decide may lock the Local
	f := decide(Intercepted{&c.who, c.name, cmd.fullName(), cmd.flags&usesStore != 0, cmd.keysOf(args)})
	if f == (Fault{}) {
		c.dispatch(args)
		return
	}
	c.flush() // what came before is not held up
	goOn := c.pause(f.Delay)
	if f.DropReply || f.CutAfter {
		c.mute()
	}
	switch {
	case !goOn, f.Drop, f.Cut:
	case f.Error != "":
		err := &Error{Text: f.Error}
		c.refuseCommand(cmd, args, err)
	default:
		c.dispatch(args)
	}
	c.release()
	if !c.pause(f.DelayReply) {
		c.w = c.w[:min(c.mark, len(c.w))]
	}
	if f.Duplicate {
		c.w = append(c.w, c.w[min(c.mark, len(c.w)):]...)
	}
	if f.CutBytes > 0 {
		c.w = bytes.Clone(c.w[:min(len(c.w), c.mark+f.CutBytes)])
		c.flush()
	}
	if f.Cut || f.CutAfter || f.CutBytes > 0 {
		c.close()
	}
	if f.Stall > 0 {
		c.flush()
		c.pause(f.Stall)
	}
}

// pause waits for a time on the store's clock. It returns false if the connection is closed, or EndPauses was called,
// before. The Local is not locked.
func (c *conn) pause(d time.Duration) bool {
	if d <= 0 {
		return !c.out.closed.Load()
	}
	ended := c.s.pausesEnded.Load()
	o, over := c.out, false
	c.s.local.Lock()
	now := c.time()
	c.s.local.Unlock()
	cancel := c.s.opts.At(now.Add(d), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		over = true
		o.wake.Broadcast()
	})
	defer cancel()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !over && !o.closed.Load() && c.s.pausesEnded.Load() == ended {
		o.wake.Wait()
	}
	return over && !o.closed.Load()
}

// EndPauses ends all delays: the delayed commands do not run, and the delayed replies are lost.
func (s *Server) EndPauses() {
	s.pausesEnded.Add(1)
	s.mu.Lock()
	conns := s.clients(anyClient)
	s.mu.Unlock()
	for _, c := range conns {
		c.out.mu.Lock()
		c.out.wake.Broadcast()
		c.out.mu.Unlock()
	}
}

// Intercept sets the function decide, which is called for each command that may run; nil = none. decide must not call
// the server. It requires Options.At.
func (s *Server) Intercept(decide func(Intercepted) Fault) {
	if decide == nil {
		s.intercept.Store(nil)
		return
	}
	s.intercept.Store(&decide)
}

// Disconnect closes the connections of all clients. Their commands end first, but have no replies.
func (s *Server) Disconnect() {
	s.mu.Lock()
	conns := s.clients(anyClient)
	s.mu.Unlock()
	for _, c := range conns {
		s.cut(c)
	}
}

// cut ends a connection at once, so that nothing later is run for the client.
func (s *Server) cut(c *conn) {
	c.out.mu.Lock()
	c.out.end()
	c.out.mu.Unlock()
	s.running.Go(c.close) // close may block
}
