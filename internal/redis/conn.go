package redis

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/socket"
)

// A conn is the connection of a client. Only the goroutine that reads the client's requests may use
// fields that change, unless a field's comment says otherwise.
type conn struct {
	s       *Server
	nc      net.Conn
	socket  *socket.Conn // nil = not a plain TCP connection
	id      int64
	who     Caller // other goroutines read it with Server.mu held
	since   time.Time
	in      requestReader
	parsed  [][][]byte // requests that parse has parsed
	sizes   []int      // sizes of the requests in parsed, in bytes
	running int        // index of the running request in parsed
	out     *output    // used by all goroutines

	certificates  int       // estimated memory of the client's certificates, in bytes
	certified     string    // user that the connection itself authenticates, for example by a certificate; empty = none
	onlyUser      string    // the only user that may log in, from the certificate; empty = any
	authenticated bool      // logged in, or no login is needed; other goroutines read it with Server.mu held
	name          string    // other goroutines read it with Server.mu held
	library       [2]string // name and version from CLIENT SETINFO; other goroutines read it with Server.mu held
	resp3         bool
	pushes        atomic.Bool // copy of resp3 for other goroutines
	last          bool        // close the connection after the replies

	w        []byte // replies that are not in out yet
	mark     int    // offset in w of the running command's replies
	large    []byte // value at the end of c.w that is not in c.w yet, see sendLarge; nil = none
	sentHead []byte // beginning of the running command's reply if a part of it was sent; otherwise nil
	muted    bool   // replies are dropped
	muteFrom int    // offset in w from which replies are dropped
	later    []byte // messages that arrived between dropped replies, or after large was set
	partial  bool   // copy of out.partial
	replyOff bool   // CLIENT REPLY OFF
	skip     int    // 2 during CLIENT REPLY SKIP, 1 during the next command; otherwise 0

	pipeline pipeline        // used with a remote store only
	window   *window         // shared by the commands of the pipeline
	turn     <-chan struct{} // see awaitTurn

	locked      bool      // this connection has locked the Local
	busy        bool      // this connection has more to do than one turn allows, and must stand in line
	inLine      bool      // this connection has locked the line
	notifies    bool      // the running command may change a key whose changes are notified
	lockedSince time.Time // when this connection last locked the line or the Local
	holding     int       // number of commands that used the Local since then

	multi       bool // a transaction has begun
	executing   bool // EXEC is running
	holds       bool // its messages to this client wait for its replies
	dropped     bool // the replies to the running transaction were dropped, see dropTransaction
	abort       bool // EXEC must fail, because a command was not queued
	queue       []queued
	queuedBytes int
	queuedArgs  int
	messages    int                 // estimated number of messages of the running EXEC, MSET or MSETNX; 0 = few
	looked      int                 // number of keys that the running transaction has examined, see look
	sent        int                 // steps of sending the messages of the running command or transaction
	written     int                 // bytes of the values that the running transaction has written
	watched     map[string]struct{} // keys of WATCH; guarded by the Local's lock
	dirty       atomic.Bool         // a watched key has changed; set with the Local locked
	waiting     atomic.Int64        // number of queued commands, for other goroutines; -1 = no transaction

	op      [1]Op  // reused by doInPlace
	version []byte // version in the latest reply of a remote store, for Options.Observe
	unmet   string // why the running command did not do what it asks for, such as missing or exists; empty = it did

	cancelEnd func() // cancels the end of the login; nil = the login does not end
	ticket    *admission.Ticket
	input     charge       // memory charged to an authenticated client, see chargeInput
	kept      atomic.Int64 // Caller.Memory
	nameBytes int          // estimated memory of the subscriptions and watched keys, in bytes
	found     int          // capacity of the reply that KEYS is building, in bytes

	subs [kinds]subscribed // other goroutines read them with Server.mu held

	noEvict, noTouch atomic.Bool
	active           atomic.Int64            // when the client last sent something, in nanoseconds since Server.started
	lastCommand      atomic.Pointer[command] // the latest command; other goroutines read it for CLIENT LIST
}

// While it runs a pipeline, a connection unlocks the Local after about maxHolding commands or the time
// Turns.Hold, whichever comes first, so that other clients get a turn.
const (
	maxHolding = 256
	maxHold    = 2 * time.Millisecond
)

// worthPrefetch is the least number of requests that are about to run for which [Local.Prefetch] pays.
const worthPrefetch = 8

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, nc: nc, socket: socket.New(nc), since: time.Now(), in: newRequestReader(s.opts.Memory), out: newOutput(s.opts.Reserve), input: charge{reserve: s.opts.Reserve}, window: newWindow()}
	if c.socket != nil && s.opts.Turns != nil {
		c.nc = admission.InLine(nc, c.socket, s.opts.Turns.Line())
	}
	c.waiting.Store(-1)
	c.active.Store(int64(time.Since(s.started)))
	return c
}

// serve reads and runs requests until the connection ends.
func (c *conn) serve() error {
	var from io.Reader = c.nc
	if c.socket != nil {
		from = c.socket
	}
	for {
		c.forget()
		if !c.chargeInput(c.in.needs()) {
			c.awaitPipeline()
			c.fail(errMemory)
			c.finish()
			return errMemory
		}
		if err := c.in.fill(from); err != nil {
			c.s.endSubscriptions(c) // immediately, because the rest of the pipeline may take long
			c.awaitPipeline()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		c.active.Store(int64(time.Since(c.s.started)))
		c.busy = c.in.end-c.in.begin >= muchWork
		err := c.runAll()
		c.unlock()
		if c.last || err != nil {
			c.s.endSubscriptions(c) // before the client can see that its connection is closed
			c.finish()
			return err
		}
		if !c.flush() {
			return nil
		}
	}
}

// runAll runs the requests that have been read. It stops early if the connection is closed.
func (c *conn) runAll() error {
	for {
		err := c.parse()
		for i, args := range c.parsed {
			c.running = i
			if c.last || c.out.closed.Load() {
				return nil
			}
			if c.s.local == nil && c.runInPipeline(args) {
				continue
			}
			if c.busy && !c.inLine {
				c.enterLine()
			}
			c.run(args)
			if c.holding >= maxHolding || len(c.w) >= fullOutput || i%4 == 0 && (c.busy || i > 0) && c.holdsLong() {
				c.yield()
				if c.out.length() >= fullOutput && !c.flush() {
					return nil
				}
			}
		}
		switch {
		case err == errIncomplete || c.last || c.out.closed.Load():
			return nil
		case err != nil:
			c.s.log.Warn("closing a connection", "client", c.who.ID, "error", err)
			if err != errNotRedis {
				c.awaitPipeline()
				c.mark = len(c.w)
				c.fail(err)
			}
			return err
		}
	}
}

// forget drops the requests that have run, so that they no longer occupy memory.
func (c *conn) forget() {
	c.in.reuse()
	clear(c.parsed)
	c.parsed, c.sizes = c.parsed[:0], c.sizes[:0]
	c.op[0] = Op{}
}

// parse parses up to maxHolding of the requests that have been read. With a remote store, it parses only
// one request. Before the login, it also parses only one, because different limits may apply to the next
// request.
func (c *conn) parse() (err error) {
	c.in.unauthenticated = !c.authenticated
	c.forget()
	limit := maxHolding
	if c.s.local == nil || !c.authenticated {
		limit = 1
	}
	total := 0
	for err == nil && len(c.parsed) < limit {
		if c.busy && c.s.opts.Turns != nil && c.s.opts.Turns.LineIsLong() && !c.in.lacksBytes() {
			c.enterLine()
		}
		var args [][]byte
		if args, err = c.in.next(); err == nil {
			c.parsed = append(c.parsed, args)
			c.sizes = append(c.sizes, c.in.size)
			total += len(args)
			c.busy = c.busy || total > manyArgs
		}
	}
	return err
}

// inputSizes returns three sizes in bytes: the running request, all requests in the buffer, and the
// free part of the buffer.
func (c *conn) inputSizes() (request, all, free int) {
	all, free = c.in.fullness()
	for i, size := range c.sizes {
		if i == c.running {
			request = size
		}
		all, free = all+size, free-size
	}
	return request, all, free
}

// lock locks the Local, if there is one, until unlock is called. For a command that notifies, it waits until the Local
// has room.
func (c *conn) lock() {
	if c.locked || c.s.local == nil {
		return
	}
	for !c.locked {
		if c.busy {
			c.enterLine()
		}
		c.s.local.Lock()
		c.locked, c.lockedSince, c.s.active = true, time.Now(), c
		if c.notifies && c.s.local.Full() && !c.out.closed.Load() {
			c.unlock()
			c.s.local.AwaitRoom()
		}
	}
	if next := c.parsed[min(c.running, len(c.parsed)):]; len(next) >= worthPrefetch {
		c.s.local.Prefetch(next)
	}
}

// unlock commits the replies, and then unlocks the Local if this connection has locked it. So the
// replies precede the messages about later changes.
func (c *conn) unlock() {
	c.commit()
	c.release()
}

// release unlocks what this connection has locked.
func (c *conn) release() {
	if c.locked {
		c.s.active = nil
		c.locked, c.holding = false, 0
		c.s.local.Unlock()
	}
	if c.inLine {
		c.inLine = false
		c.s.opts.Turns.Line().Unlock()
	}
}

// mayNotify reports whether a command may change a key whose changes are notified. The Local is locked.
func (c *conn) mayNotify(cmd *command, args [][]byte) bool {
	isExec := cmd.name == "exec"
	switch {
	case cmd.flags&writes == 0 && !isExec, c.s.local == nil || !c.s.local.Notifies(nil):
		return false
	case isExec:
		return slices.ContainsFunc(c.queue, func(q queued) bool { return c.mayNotify(q.cmd, q.args) })
	case len(args) > manyArgs:
		return true // looking at all keys would take long
	}
	keys := false
	for key := range cmd.keysOf(args) {
		if keys = true; c.s.local.Notifies(key) {
			return true
		}
	}
	return !keys
}

// yield unlocks the Local and lets other goroutines run. Without Gosched, a goroutine that waits for
// the Local would become runnable, but on a busy machine it would run only after Go's scheduler has
// preempted this goroutine, 10 to 20 ms later.
func (c *conn) yield() {
	c.busy = true
	c.unlock()
	runtime.Gosched()
}

func (c *conn) run(args [][]byte) {
	c.mark = len(c.w)
	if c.replyOff || c.skip == 1 {
		c.mute()
	}
	if decide := c.s.intercept.Load(); decide != nil {
		c.dispatchFaulty(*decide, args)
	} else {
		c.dispatch(args)
	}
	if c.muted {
		c.unmute()
	}
	if c.skip > 0 {
		c.skip--
	}
	c.s.commands.Add(1)
}

// mute makes the connection drop all later replies, including the remaining replies of a running
// transaction.
func (c *conn) mute() {
	if !c.muted {
		c.muted, c.muteFrom = true, len(c.w)
	}
}

// unmute makes the connection send replies again. It removes the dropped replies from c.w, but keeps the
// messages that arrived between them.
func (c *conn) unmute() {
	if c.muted {
		c.w = append(c.w[:c.muteFrom], c.later...)
		c.later, c.muted = idle(c.later[:0]), false
	}
}

// dispatch runs, queues or refuses a request.
func (c *conn) dispatch(args [][]byte) {
	switch {
	case equalFold(args[0], "quit"):
		c.ok()
		c.last = true
		return
	case equalFold(args[0], "post") || equalFold(args[0], "host:"): // from a browser, perhaps for a malicious web page
		c.s.log.Warn("closing a connection that speaks HTTP", "client", c.who.ID)
		c.last = true
		return
	}
	cmd, unknownSub := c.s.table.lookup(args)
	if err := c.refusal(cmd, unknownSub, args); err != nil {
		c.abort = c.abort || c.multi
		if cmd != nil && cmd.name == "exec" && c.s.local != nil {
			c.discard()
			err = &Error{Code: "EXECABORT", Text: "Transaction discarded because of: " + err.(*Error).Text}
		}
		c.refuseCommand(cmd, args, err)
		return
	}
	if c.lastCommand.Load() != cmd {
		c.lastCommand.Store(cmd)
	}
	if c.multi && cmd.flags&atOnce == 0 {
		if err := c.enqueue(cmd, args); err != nil {
			c.refuseCommand(cmd, args, err)
		}
		return
	}
	c.execute(cmd, args)
}

// refusal returns the error for a request that must be neither run nor queued. It returns nil for any other
// request. The checks are in the order of Redis. The last two checks are only for a remote store.
func (c *conn) refusal(cmd *command, unknownSub bool, args [][]byte) error {
	switch {
	case cmd == nil:
		return unknownCommand(args)
	case unknownSub:
		return unknownSubcommand(cmd, args[1])
	case !cmd.accepts(args):
		return wrongArguments(cmd.fullName())
	case cmd.tooManyOptions(args):
		return errSyntax
	case !c.authenticated && cmd.flags&noAuth == 0 && c.certified != "":
		return errNoConnect
	case !c.authenticated && cmd.flags&noAuth == 0:
		return errNoAuth
	case cmd.flags&needsAll != 0 && !c.mayAll():
		return notPermitted(cmd)
	case !c.resp3 && cmd.flags&whileSubscribed == 0 && c.subscriptions() > 0:
		return &Error{Text: "Can't execute '" + cmd.fullName() + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"}
	case c.s.local == nil && cmd.flags&needsExpiry != 0:
		return errNoExpiry
	case c.s.local == nil && cmd.flags&needsLocal != 0:
		return notAtomic(string(bytes.ToUpper([]byte(cmd.name))))
	}
	return nil
}

// execute runs a command. It locks the Local if the command uses the store.
func (c *conn) execute(cmd *command, args [][]byte) {
	var began time.Time
	if c.s.opts.Observe != nil {
		began = time.Now()
	}
	if cmd.flags&denyOOM != 0 && c.s.local != nil {
		if err := c.keepValues(args); err != nil {
			c.refuseCommand(cmd, args, err)
			return
		}
	}
	if cmd.flags&usesStore != 0 {
		if cmd.flags&costly != 0 {
			c.busy = true
		}
		c.lock()
		if turns := c.s.opts.Turns; turns != nil && !c.inLine && !c.executing && turns.Crowded() && c.isCostly(cmd, args) {
			c.standInLine()
		}
		if !c.executing && cmd.flags&reads == 0 {
			if c.notifies = c.mayNotify(cmd, args); c.notifies && c.s.local.Full() {
				c.unlock()
				c.lock()
			}
		}
		if c.holding++; !c.executing && c.out.closed.Load() {
			return // the connection ended, for example with its login, while it waited for the lock
		}
	}
	if !c.executing {
		c.sent = 0
	}
	var err error
	if c.executing || cmd.flags&reads == 0 { // a read by itself is not limited
		if err = c.look(cmd.looksAt(args)); err == nil {
			err = c.mayAnnounce(cmd, args)
		}
	}
	if err == nil {
		err = cmd.run(c, args)
	}
	if err == nil && c.large != nil {
		c.sendLarge()
	}
	c.large = nil
	c.notifies = c.notifies && c.executing // a command of EXEC leaves it as it is
	if err != nil {
		c.last = c.last || c.sentHead != nil // a part of the reply was sent, and its rest will not follow
		c.fail(err)
	}
	c.observe(cmd, args, began, err)
	c.sentHead = nil
}

// keepValues replaces each large argument by memory that stays valid, because the Local may keep it.
func (c *conn) keepValues(args [][]byte) error {
	size := 0
	for i, arg := range args {
		if len(arg) < LargeValue {
			continue
		}
		if c.executing {
			if c.written+len(arg) <= maxWritten { // otherwise mayWrite refuses the command
				args[i] = bytes.Clone(arg)
			}
			continue
		}
		c.unlock()
		if args[i] = c.in.keep(arg); &args[i][0] != &arg[0] {
			if size += len(arg); !c.chargeInput(len(c.in.buf) + size) {
				return errMemory
			}
		}
	}
	return nil
}

// time returns the time on the store's clock.
func (c *conn) time() time.Time { return c.s.opts.Now() }

// now returns the time in milliseconds since the Unix epoch.
func (c *conn) now() int64 { return c.time().UnixMilli() }

func equalFold(b []byte, lower string) bool {
	return len(b) == len(lower) && bytes.EqualFold(b, []byte(lower))
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
