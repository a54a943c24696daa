package redis

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/socket"
)

// A conn is one client. What is not said to be guarded belongs to the goroutine that reads
// its requests.
type conn struct {
	s       *Server
	nc      net.Conn
	fast    *socket.Conn // nil: not a plain TCP connection
	id      int64
	who     Caller
	since   time.Time
	in      requestReader
	name    []byte    // guarded by Server.mu for others, as library is
	proven  string    // the user that the connection itself proves to be
	library [2]string // name and version, of CLIENT SETINFO
	resp3   bool
	known   bool // has logged in, or need not

	w      []byte // replies, not committed yet
	kept   []byte // messages among replies that are muted
	mark   int    // where in w the replies of the running command begin
	failed bool   // the running command replied with an error
	muted  bool   // replies are dropped, those after silent
	silent int    // where in w they begin
	quiet  bool   // CLIENT REPLY OFF
	skip   int    // CLIENT REPLY SKIP: 2 is for the command that says so, 1 for the next one
	last   bool   // close after the replies

	soon        [][]byte // memory of acquire
	locked      bool     // the engine is, by this connection
	holding     int      // commands since it was
	queue       []queued // of MULTI
	queuedBytes int
	multi       bool
	abort       bool // EXEC refuses: a command was not queued

	watched map[string]struct{} // guarded by the engine
	dirty   atomic.Bool         // a watched key changed; set with the engine locked

	version []byte // that came with the reply of the store to the running command, for Options.Observe

	channels, patterns subscribed  // guarded by Server.mu for others
	pushes             atomic.Bool // resp3, for others

	noEvict, noTouch atomic.Bool
	waiting          atomic.Int64 // commands that wait for EXEC, for others; -1: no transaction
	active           atomic.Int64 // when the client last sent something, in nanoseconds since Server.started

	out output

	noted       *command // the last one that CLIENT LIST knows of
	lastCommand string   // its name; guarded by Server.mu
}

// queued is a command that waits for EXEC.
type queued struct {
	cmd  *command
	args [][]byte
}

// output is what is on its way to a client. Whoever has appended to it flushes it, or
// wakes the writer.
type output struct {
	mu      sync.Mutex
	wake    sync.Cond
	pending []byte
	spare   []byte
	writing bool
	writer  bool // a goroutine waits on wake
	closed  bool
	slow    bool // closed because too much was pending
}

const (
	// maxPending is how many bytes may wait for a subscriber, as in Redis.
	maxPending = 32 << 20
	// fullOutput is how many bytes of replies make a client wait for its own reading.
	fullOutput = 1 << 20
	// keptOutput is how large a buffer may be to be used again.
	keptOutput = 256 << 10
	// maxHolding is how many commands of a pipeline may pass before others get the engine.
	maxHolding = 256
)

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, nc: nc, fast: socket.New(nc), since: time.Now(), lastCommand: "NULL", channels: subscribed{}, patterns: subscribed{}}
	c.out.wake.L = &c.out.mu
	c.waiting.Store(-1)
	c.active.Store(int64(time.Since(s.started)))
	return c
}

// serve reads requests until the connection ends.
func (c *conn) serve() error {
	var from io.Reader = c.nc
	if c.fast != nil {
		from = c.fast
	}
	for {
		if err := c.in.fill(from); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		c.active.Store(int64(time.Since(c.s.started)))
		err := c.batch()
		c.release()
		if !c.flush() {
			return nil
		}
		if c.last || err != nil {
			return err
		}
	}
}

// batch runs the requests that have come.
func (c *conn) batch() error {
	for !c.last {
		c.in.stranger = !c.known
		args, err := c.in.next()
		if err != nil {
			c.begin()
			c.error(err.Error())
			return err
		}
		if args == nil {
			return nil
		}
		c.run(args)
		if c.holding >= maxHolding || len(c.w) >= fullOutput {
			c.release()
			if len(c.w) >= fullOutput || c.out.length() >= fullOutput {
				c.flush()
			}
		}
	}
	return nil
}

// begin begins the replies of a command.
func (c *conn) begin() { c.mark, c.failed = len(c.w), false }

// acquire locks the engine, if there is one, for the rest of the batch or so.
func (c *conn) acquire() {
	if c.locked || c.s.engine == nil {
		return
	}
	c.soon = c.in.ahead(c.soon[:0], maxHolding)
	c.s.engine.Lock()
	c.locked, c.s.active = true, c
	if len(c.soon) > 0 {
		c.s.engine.Expect(c.soon)
		clear(c.soon) // they are parts of a buffer that may be replaced
	}
}

// release lets others have the engine. What the client is told of is in its output before
// anything that happens later.
func (c *conn) release() {
	c.commit()
	if c.locked {
		c.s.active = nil
		c.locked, c.holding = false, 0
		c.s.engine.Unlock()
	}
}

// commit puts the replies into the output.
func (c *conn) commit() {
	if len(c.w) == 0 {
		return
	}
	o := &c.out
	o.mu.Lock()
	if len(o.pending) == 0 {
		o.pending, c.w = c.w, o.pending[:0]
	} else {
		o.pending = append(o.pending, c.w...)
		c.w = c.w[:0]
	}
	o.mu.Unlock()
	c.mark = 0
}

func (o *output) length() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.pending)
}

// flush writes what is pending, and what is added meanwhile. If somebody else is writing
// it waits until little is left. False means that the connection is closed.
func (c *conn) flush() bool {
	c.commit()
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing && len(o.pending) >= fullOutput && !o.closed {
		o.wake.Wait()
	}
	if !o.writing {
		o.write(c)
	}
	return !o.closed
}

// write writes until nothing is pending. o.mu is held, but not while it writes.
func (o *output) write(c *conn) {
	o.writing = true
	for len(o.pending) > 0 && !o.closed {
		p := o.pending
		o.pending = o.spare[:0]
		o.spare = nil
		o.mu.Unlock()
		err := c.s.settle()
		if err == nil {
			err = c.write(p)
		}
		o.mu.Lock()
		if err != nil {
			o.closed = true
		}
		if cap(p) <= keptOutput {
			o.spare = p[:0]
		}
	}
	o.writing = false
	o.wake.Broadcast()
}

// write writes replies and messages.
func (c *conn) write(p []byte) error {
	if c.fast != nil {
		n, err := c.fast.TryWrite(p)
		if err != nil || n == len(p) {
			return err
		}
		p = p[n:]
	}
	_, err := c.nc.Write(p)
	return err
}

// settle waits until the changes made so far are kept.
func (s *Server) settle() error {
	if s.opts.Settle == nil {
		return nil
	}
	return s.opts.Settle()
}

// writeMessages writes what others have for the client. It runs from the first
// subscription on.
func (c *conn) writeMessages() {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed {
		if len(o.pending) > 0 && !o.writing {
			o.write(c)
			continue
		}
		o.wake.Wait()
	}
}

// startWriter sees to it that messages are written.
func (c *conn) startWriter() {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writer {
		o.writer = true
		c.s.running.Go(c.writeMessages)
	}
}

// cut closes the connection. Its goroutines end.
func (c *conn) cut() {
	o := &c.out
	o.mu.Lock()
	o.closed = true
	o.wake.Broadcast()
	o.mu.Unlock()
	_ = c.nc.Close() // there is nobody left to be told
}

// send adds messages of others to the output.
func (c *conn) send(message []byte) {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
	case len(o.pending)+len(message) > maxPending:
		o.closed, o.slow = true, true
		o.pending = nil
		o.wake.Broadcast()
		// Close may block on a TLS connection whose peer reads nothing.
		c.s.running.Go(func() {
			c.s.log.Warn("closing a subscriber that reads too slowly", "client", c.who.ID, "pending", maxPending)
			_ = c.nc.Close() // there is nobody left to be told
		})
	default:
		o.pending = append(o.pending, message...)
		o.wake.Broadcast()
	}
}

// run runs one request.
func (c *conn) run(args [][]byte) {
	c.begin()
	cmd, sub := c.s.lookup(args)
	if c.quiet || c.skip == 1 {
		c.mute()
	}
	c.dispatch(cmd, sub, args)
	c.unmute()
	if c.skip > 0 {
		c.skip--
	}
	c.s.commands.Add(1)
}

// mute drops the replies from here on, also when a transaction has begun to reply.
func (c *conn) mute() {
	if !c.muted {
		c.muted, c.silent = true, len(c.w)
	}
}

// unmute ends that. Messages that came meanwhile are kept.
func (c *conn) unmute() {
	if c.muted {
		c.w = append(c.w[:c.silent], c.kept...)
		c.kept, c.muted = c.kept[:0], false
	}
}

// dispatch decides what becomes of a request. The order of the checks is Redis's.
func (c *conn) dispatch(cmd *command, unknownSub bool, args [][]byte) {
	switch {
	case equalFold(args[0], "quit"):
		c.ok()
		c.last = true
		return
	case equalFold(args[0], "post") || equalFold(args[0], "host:"):
		// A browser, which somebody made send requests to us.
		c.s.log.Warn("closing a connection that speaks HTTP", "client", c.who.ID)
		c.last = true
		return
	}
	if refusal := c.refusal(cmd, unknownSub, args); refusal != "" {
		c.abort = c.abort || c.multi
		if cmd != nil && cmd.name == "exec" && c.s.engine != nil {
			c.discard()
			refusal = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(refusal, "ERR ")
		}
		c.fail(refusal)
		if c.s.opts.Observe != nil {
			c.observe(cmd, args, time.Time{})
		}
		return
	}
	c.note(cmd)
	if c.multi && cmd.flags&atOnce == 0 {
		if !c.enqueue(cmd, args) {
			c.abort = true
			c.error("the transaction is too large")
			return
		}
		c.waiting.Store(int64(len(c.queue)))
		c.status("QUEUED")
		return
	}
	c.execute(cmd, args)
}

// refusal says why a request is not run, nor queued; empty: it may be.
func (c *conn) refusal(cmd *command, unknownSub bool, args [][]byte) string {
	switch {
	case cmd == nil:
		return unknownCommand(args)
	case unknownSub && cmd.otherSub != "":
		return cmd.otherSub
	case unknownSub:
		return "ERR unknown subcommand '" + printable(args[1], 128) + "'. Try " + strings.ToUpper(cmd.name) + " HELP."
	case cmd.arity > 0 && len(args) != cmd.arity || len(args) < -cmd.arity:
		return "ERR wrong number of arguments for '" + cmd.fullName() + "' command"
	case !c.known && cmd.flags&noAuth == 0:
		return "NOAUTH Authentication required."
	case c.multi && cmd.flags&noMulti != 0:
		return "ERR Command not allowed inside a transaction"
	case !c.resp3 && cmd.flags&whileSubscribed == 0 && c.subscriptions() > 0:
		return "ERR Can't execute '" + cmd.fullName() + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
	}
	if c.s.engine == nil && cmd.flags&inOneStep != 0 {
		return c.s.notHere(cmd)
	}
	return ""
}

// execute runs a command, and tells of it.
func (c *conn) execute(cmd *command, args [][]byte) {
	if c.s.opts.Observe == nil {
		c.perform(cmd, args)
		return
	}
	began := time.Now()
	c.perform(cmd, args)
	c.observe(cmd, args, began)
}

// perform runs a command, with the engine locked if it needs that.
func (c *conn) perform(cmd *command, args [][]byte) {
	if cmd.flags&usesStore != 0 && c.s.engine != nil {
		c.acquire()
		c.holding++
		if text := c.forbidden(cmd, args); text != "" {
			c.error(text)
			return
		}
	}
	if c.s.engine == nil && cmd.remote != nil {
		cmd.remote(c, args)
	} else {
		cmd.run(c, args)
	}
}

// forbidden says why the engine would refuse a command, if it would: before anything is
// done, as commands of several keys do all or nothing.
func (c *conn) forbidden(cmd *command, args [][]byte) string {
	e := c.s.engine
	write := cmd.flags&writes != 0
	several := write && cmd.first > 0 && cmd.last != cmd.first
	if !several && !e.Restricted() {
		return ""
	}
	for key := range cmd.keys(args) {
		if !e.Allowed(&c.who, key, write) {
			return "not authorized"
		}
		if several {
			if err := e.Fenced(key); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

// note remembers a command for CLIENT LIST.
func (c *conn) note(cmd *command) {
	if cmd == c.noted {
		return
	}
	c.noted = cmd
	c.s.mu.Lock()
	c.lastCommand = cmd.fullName()
	c.s.mu.Unlock()
}

// now is the store's clock in milliseconds, or ours if the store is far.
func (c *conn) now() int64 {
	if c.s.engine == nil {
		return time.Now().UnixMilli()
	}
	return c.s.engine.Now().UnixMilli()
}

func equalFold(b []byte, lower string) bool {
	return len(b) == len(lower) && bytes.EqualFold(b, []byte(lower))
}

// printable returns at most n bytes of what a client sent, for an error. For Redis a zero
// byte ends it.
func printable(b []byte, n int) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b[:min(len(b), n)])
}

// address is an address as CLIENT LIST shows it.
func address(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
