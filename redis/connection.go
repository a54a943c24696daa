package redis

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

func connectionCommands() []*command {
	const flags = noScript | loadingOK | staleOK
	client := func(name string, arity int, since, args, summary string, run func(*conn, [][]byte)) *command {
		return &command{name: name, arity: arity, flags: flags, run: run, since: since, args: args, summary: summary, group: "connection"}
	}
	rows := []*command{
		{name: "ping", arity: -1, flags: fast | whileSubscribed, run: runPing, since: "1.0.0", args: "[message:string]", summary: "Ping the server"},
		{name: "echo", arity: 2, flags: fast | loadingOK | staleOK, run: runEcho, since: "1.0.0", args: "message:string", summary: "Echo the given string"},
		{name: "hello", arity: -1, flags: flags | fast | noAuth, run: runHello, since: "6.0.0", args: "[protover:integer] [auth:string] [clientname:string]", summary: "Handshake with the server"},
		{name: "auth", arity: -2, flags: flags | fast | noAuth, run: runAuth, since: "1.0.0", args: "[username:string] password:string", summary: "Authenticate to the server"},
		{name: "select", arity: 2, flags: loadingOK | staleOK | fast, run: runSelect, since: "1.0.0", args: "index:integer", summary: "Change the selected database for the current connection"},
		{name: "reset", arity: 1, flags: flags | fast | noAuth | atOnce | whileSubscribed, run: runReset, since: "6.2.0", summary: "Reset the connection"},
		{name: "quit", arity: -1, flags: flags | fast | noAuth | atOnce | whileSubscribed, run: func(c *conn, _ [][]byte) { c.ok() }, since: "1.0.0", summary: "Close the connection"},
		{name: "client", arity: -2, since: "2.4.0", summary: "A container for client connection commands", subs: []*command{
			client("id", 2, "5.0.0", "", "Returns the client ID for the current connection", func(c *conn, _ [][]byte) { c.integer(c.id) }),
			client("info", 2, "6.2.0", "", "Returns information about the current client connection", runClientInfo),
			client("list", -2, "2.4.0", "[type:string] [id:integer...]", "Get the list of client connections", runClientList),
			client("getname", 2, "2.6.9", "", "Get the current connection name", runClientGetName),
			client("setname", 3, "2.6.9", "connection-name:string", "Set the current connection name", runClientSetName),
			client("setinfo", 4, "7.2.0", "attr:string value:string", "Set client or connection specific info", runClientSetInfo),
			client("reply", 3, "3.2.0", "on-off-skip:string", "Instruct the server whether to reply to commands", runClientReply),
			client("kill", -3, "2.4.0", "filter:string...", "Kill the connection of a client", runClientKill),
			client("no-evict", 3, "7.0.0", "enabled:string", "Set client eviction mode for the current connection", runClientSwitch(func(c *conn, on bool) { c.noEvict.Store(on) })),
			client("no-touch", 3, "7.2.0", "enabled:string", "Controls whether commands alter the LRU of keys", runClientSwitch(func(c *conn, on bool) { c.noTouch.Store(on) })),
			clientHelp(),
		}},
	}
	for _, cmd := range rows {
		cmd.group = "connection"
	}
	return rows
}

func runPing(c *conn, args [][]byte) {
	if len(args) > 2 {
		c.error("wrong number of arguments for 'ping' command")
		return
	}
	if !c.resp3 && c.subscriptions() > 0 {
		c.array(2)
		c.text("pong")
		if len(args) == 2 {
			c.bulk(args[1])
		} else {
			c.bulk(nil)
		}
		return
	}
	if len(args) == 2 {
		c.bulk(args[1])
		return
	}
	c.status("PONG")
}

func runEcho(c *conn, args [][]byte) { c.bulk(args[1]) }

const (
	textWrongPass = "WRONGPASS invalid username-password pair or user is disabled."
	textNoUsers   = "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
)

const defaultUser = "default"

// login judges what AUTH or HELLO brought.
func (c *conn) login(user, password []byte) bool {
	if c.s.opts.Login == nil {
		return string(user) == defaultUser
	}
	as, ok := c.s.opts.Login(string(user), password)
	if ok {
		c.become(as, true)
	}
	return ok
}

func runAuth(c *conn, args [][]byte) {
	user, password := []byte(defaultUser), args[1]
	switch {
	case len(args) > 3:
		c.error(textSyntax)
		return
	case len(args) == 3:
		user, password = args[1], args[2]
	case c.s.opts.Login == nil:
		c.error(textNoUsers)
		return
	}
	if !c.login(user, password) {
		c.fail(textWrongPass)
		return
	}
	c.ok()
}

func runHello(c *conn, args [][]byte) {
	version := int64(2)
	if c.resp3 {
		version = 3
	}
	if len(args) > 1 {
		n, ok := parseInt(args[1])
		if !ok {
			c.error("Protocol version is not an integer or out of range")
			return
		}
		if n != 2 && n != 3 {
			c.fail("NOPROTO unsupported protocol version")
			return
		}
		version = n
	}
	var name []byte
	var user, password []byte
	named := false
	for i := 2; i < len(args); i++ {
		switch more := len(args) - i - 1; {
		case equalFold(args[i], "auth") && more >= 2:
			user, password = args[i+1], args[i+2]
			i += 2
		case equalFold(args[i], "setname") && more >= 1:
			name, named = args[i+1], true
			if !c.goodName(name) {
				return
			}
			i++
		default:
			c.error("Syntax error in HELLO option '" + string(args[i]) + "'")
			return
		}
	}
	if user != nil && !c.login(user, password) {
		c.fail(textWrongPass)
		return
	}
	if !c.known {
		c.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	if named {
		c.setName(name)
	}
	c.speak(version == 3)
	c.mapping(7)
	c.text("server")
	c.text("redis")
	c.text("version")
	c.text(redisVersion)
	c.text("proto")
	c.integer(version)
	c.text("id")
	c.integer(c.id)
	c.text("mode")
	c.text("standalone")
	c.text("role")
	c.text("master")
	c.text("modules")
	c.array(0)
}

// speak changes the protocol.
func (c *conn) speak(resp3 bool) {
	c.resp3 = resp3
	c.pushes.Store(resp3)
}

// databaseArg reads the number of a database.
func (c *conn) databaseArg(arg []byte) (int64, bool) {
	n, ok := c.integerArg(arg)
	if ok && (n > math.MaxInt32 || n < math.MinInt32) {
		c.error("value is out of range, value must between -2147483648 and 2147483647")
		return 0, false
	}
	return n, ok
}

func runSelect(c *conn, args [][]byte) {
	switch n, ok := c.databaseArg(args[1]); {
	case !ok:
	case n != 0:
		c.error(textDatabase)
	default:
		c.ok()
	}
}

func runReset(c *conn, _ [][]byte) {
	c.discard()
	for _, name := range c.channels.names() {
		c.s.end(c, &c.s.channels, c.channels, name)
	}
	for _, name := range c.patterns.names() {
		c.s.end(c, &c.s.patterns, c.patterns, name)
	}
	c.speak(false)
	c.setName(nil)
	c.quiet, c.skip = false, 0
	c.noEvict.Store(false)
	c.noTouch.Store(false)
	c.unmute()
	c.become(c.proven, c.s.opts.Login == nil || c.proven != "")
	c.status("RESET")
}

// goodName replies with an error if a name has bytes that would confuse CLIENT LIST.
func (c *conn) goodName(name []byte) bool {
	for _, b := range name {
		if b < '!' || b > '~' {
			c.error("Client names cannot contain spaces, newlines or special characters.")
			return false
		}
	}
	return true
}

func (c *conn) setName(name []byte) {
	c.s.mu.Lock()
	c.name = bytes.Clone(name)
	c.s.mu.Unlock()
}

func runClientSetName(c *conn, args [][]byte) {
	if c.goodName(args[2]) {
		c.setName(args[2])
		c.ok()
	}
}

func runClientGetName(c *conn, _ [][]byte) {
	if len(c.name) == 0 {
		c.null()
		return
	}
	c.bulk(c.name)
}

func runClientSetInfo(c *conn, args [][]byte) {
	i := 0
	switch {
	case equalFold(args[2], "lib-name"):
	case equalFold(args[2], "lib-ver"):
		i = 1
	default:
		c.error("Unrecognized option '" + string(args[2]) + "'")
		return
	}
	for _, b := range args[3] {
		if b < '!' || b > '~' {
			c.error(string(bytes.ToLower(args[2])) + " cannot contain spaces, newlines or special characters.")
			return
		}
	}
	c.s.mu.Lock()
	c.library[i] = string(args[3])
	c.s.mu.Unlock()
	c.ok()
}

func runClientReply(c *conn, args [][]byte) {
	switch {
	case equalFold(args[2], "on"):
		c.quiet, c.skip = false, 0
		c.unmute()
		c.ok()
	case equalFold(args[2], "off"):
		c.quiet = true
		c.mute()
	case equalFold(args[2], "skip"):
		if !c.quiet {
			c.skip = 2
		}
	default:
		c.error(textSyntax)
	}
}

func runClientSwitch(do func(c *conn, on bool)) func(*conn, [][]byte) {
	return func(c *conn, args [][]byte) {
		switch {
		case equalFold(args[2], "on"):
			do(c, true)
		case equalFold(args[2], "off"):
			do(c, false)
		default:
			c.error(textSyntax)
			return
		}
		c.ok()
	}
}

// describe is the line of a client in CLIENT LIST. Server.mu is held.
func (c *conn) describe(of *conn) string {
	flags := ""
	for _, f := range []struct {
		set    bool
		letter string
	}{{of.subscriptions() > 0, "P"}, {of.waiting.Load() >= 0, "x"}, {of.dirty.Load(), "d"}, {of.noEvict.Load(), "e"}, {of.noTouch.Load(), "T"}} {
		if f.set {
			flags += f.letter
		}
	}
	if flags == "" {
		flags = "N"
	}
	request, unread, free := 0, 0, 0
	if c == of { // another's reader is not ours to look at
		request, unread, free = of.in.fullness()
	}
	resp := 2
	if of.pushes.Load() {
		resp = 3
	}
	user := of.who.User
	if user == "" {
		user = defaultUser
	}
	pending := of.out.length()
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=0 sub=%d psub=%d ssub=0 multi=%d qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=0 rbs=%d rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=r cmd=%s user=%s redir=-1 resp=%d lib-name=%s lib-ver=%s",
		of.id, address(of.nc.RemoteAddr()), address(of.nc.LocalAddr()), of.id, of.name, int(time.Since(of.since).Seconds()), int((time.Since(of.s.started) - time.Duration(of.active.Load())).Seconds()),
		flags, len(of.channels), len(of.patterns), of.waiting.Load(), request+unread, free, request, smallBuffer, pending, smallBuffer+pending, of.lastCommand, user, resp, of.library[0], of.library[1])
}

func runClientInfo(c *conn, _ [][]byte) {
	c.s.mu.Lock()
	line := c.describe(c)
	c.s.mu.Unlock()
	c.verbatim(line + "\n")
}

// clients returns the connections in the order in which they came. Server.mu is held.
func (s *Server) clients() []*conn {
	var all []*conn
	for c := range s.conns {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *conn) int { return int(a.id - b.id) })
	return all
}

// clientTypes are those that Redis knows; this server has only two of them.
var clientTypes = []string{"normal", "master", "replica", "slave", "pubsub"}

func (c *conn) typeName() string {
	if c.subscriptions() > 0 {
		return "pubsub"
	}
	return "normal"
}

func runClientList(c *conn, args [][]byte) {
	wanted := func(*conn) bool { return true }
	switch {
	case len(args) == 2:
	case len(args) == 4 && equalFold(args[2], "type"):
		name := strings.ToLower(string(args[3]))
		if !slices.Contains(clientTypes, name) {
			c.error("Unknown client type '" + string(args[3]) + "'")
			return
		}
		wanted = func(of *conn) bool { return of.typeName() == name }
	case len(args) > 3 && equalFold(args[2], "id"):
		var ids []int64
		for _, a := range args[3:] {
			id, ok := parseInt(a)
			if !ok {
				c.error("Invalid client ID")
				return
			}
			ids = append(ids, id)
		}
		wanted = func(of *conn) bool { return slices.Contains(ids, of.id) }
	default:
		c.error(textSyntax)
		return
	}
	var lines strings.Builder
	c.s.mu.Lock()
	for _, of := range c.s.clients() {
		if wanted(of) {
			lines.WriteString(c.describe(of) + "\n")
		}
	}
	c.s.mu.Unlock()
	c.verbatim(lines.String())
}

func runClientKill(c *conn, args [][]byte) {
	if len(args) == 3 { // the old form: an address
		if killed := c.kill(func(of *conn) bool { return address(of.nc.RemoteAddr()) == string(args[2]) }); killed == 0 {
			c.error("No such client")
			return
		}
		c.ok()
		return
	}
	if len(args)%2 != 0 {
		c.error(textSyntax)
		return
	}
	skipMe := true
	var filters []func(*conn) bool
	for i := 2; i < len(args); i += 2 {
		value := string(args[i+1])
		switch {
		case equalFold(args[i], "id"):
			id, ok := parseInt(args[i+1])
			if !ok || id < 1 {
				c.error("client-id should be greater than 0")
				return
			}
			filters = append(filters, func(of *conn) bool { return of.id == id })
		case equalFold(args[i], "addr"):
			filters = append(filters, func(of *conn) bool { return address(of.nc.RemoteAddr()) == value })
		case equalFold(args[i], "laddr"):
			filters = append(filters, func(of *conn) bool { return address(of.nc.LocalAddr()) == value })
		case equalFold(args[i], "user"):
			filters = append(filters, func(of *conn) bool {
				return of.who.User == value || of.who.User == "" && value == defaultUser
			})
		case equalFold(args[i], "type"):
			if !slices.Contains(clientTypes, strings.ToLower(value)) {
				c.error("Unknown client type '" + value + "'")
				return
			}
			filters = append(filters, func(of *conn) bool { return of.typeName() == strings.ToLower(value) })
		case equalFold(args[i], "skipme") && (strings.EqualFold(value, "yes") || strings.EqualFold(value, "no")):
			skipMe = strings.EqualFold(value, "yes")
		default:
			c.error(textSyntax)
			return
		}
	}
	c.integer(int64(c.kill(func(of *conn) bool {
		if of == c && skipMe {
			return false
		}
		return !slices.ContainsFunc(filters, func(f func(*conn) bool) bool { return !f(of) })
	})))
}

// kill closes the connections that are wanted; its own only after the reply.
func (c *conn) kill(wanted func(*conn) bool) int {
	var found []*conn
	c.s.mu.Lock()
	for _, of := range c.s.clients() {
		if wanted(of) {
			found = append(found, of)
		}
	}
	c.s.mu.Unlock()
	for _, of := range found {
		if of == c {
			c.last = true
			continue
		}
		of.cut()
	}
	return len(found)
}

// introduce finds out who the client is before it says so.
func (c *conn) introduce() {
	if c.s.opts.Identify != nil {
		c.proven = c.s.opts.Identify(c.nc)
	}
	c.become(c.proven, c.s.opts.Login == nil || c.proven != "")
}

// become makes the client a user.
func (c *conn) become(user string, known bool) {
	c.s.mu.Lock()
	c.who.User, c.known = user, known
	c.s.mu.Unlock()
}
