package redis

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

func clientCommands() []*command {
	const flags = noScript | loadingOK | staleOK
	client := func(name string, arity int, since, args, summary string, run func(*conn, [][]byte) error) *command {
		return &command{name: name, arity: arity, flags: flags, run: run, since: since, args: args, summary: summary}
	}
	return []*command{
		{name: "ping", arity: -1, flags: fast | whileSubscribed, run: runPing, since: "1.0.0", args: "[message:string]", summary: "Ping the server"},
		{name: "echo", arity: 2, flags: fast | loadingOK | staleOK, run: runEcho, since: "1.0.0", args: "message:string", summary: "Echo the given string"},
		{name: "hello", arity: -1, flags: flags | fast | noAuth, run: runHello, since: "6.0.0", args: "[protover:integer] [auth:string] [clientname:string]", summary: "Handshake with the server"},
		{name: "auth", arity: -2, flags: flags | fast | noAuth, run: runAuth, since: "1.0.0", args: "[username:string] password:string", summary: "Authenticate to the server"},
		{name: "select", arity: 2, flags: loadingOK | staleOK | fast, run: runSelect, since: "1.0.0", args: "index:integer", summary: "Change the selected database for the current connection"},
		{name: "reset", arity: 1, flags: flags | fast | noAuth | atOnce | whileSubscribed, run: runReset, since: "6.2.0", summary: "Reset the connection"},
		{name: "quit", arity: -1, flags: flags | fast | noAuth | atOnce | whileSubscribed, since: "1.0.0", summary: "Close the connection"},
		{name: "client", arity: -2, since: "2.4.0", summary: "A container for client connection commands", subs: []*command{
			client("id", 2, "5.0.0", "", "Returns the client ID for the current connection", runClientID),
			client("info", 2, "6.2.0", "", "Returns information about the current client connection", runClientInfo),
			client("list", -2, "2.4.0", "[type:string] [id:integer...]", "Get the list of client connections", runClientList),
			client("getname", 2, "2.6.9", "", "Get the current connection name", runClientGetName),
			client("setname", 3, "2.6.9", "connection-name:string", "Set the current connection name", runClientSetName),
			client("setinfo", 4, "7.2.0", "attr:string value:string", "Set client or connection specific info", runClientSetInfo),
			client("reply", 3, "3.2.0", "on-off-skip:string", "Instruct the server whether to reply to commands", runClientReply),
			client("kill", -3, "2.4.0", "filter:string...", "Kill the connection of a client", runClientKill),
			client("unblock", -3, "5.0.0", "client-id:integer [unblock-type:string]", "Unblock a client: there are no blocked clients", runClientUnblock),
			client("no-evict", 3, "7.0.0", "enabled:string", "Set client eviction mode for the current connection", runClientSwitch),
			client("no-touch", 3, "7.2.0", "enabled:string", "Controls whether commands alter the LRU of keys", runClientSwitch),
			help("client"),
		}},
		{name: "acl", arity: -2, group: "server", since: "6.0.0", summary: "A container for Access List Control commands", subs: []*command{
			client("whoami", 2, "6.0.0", "", "Return the authenticated username of the current connection", runACLWhoAmI),
			help("acl"),
		}},
	}
}

func runPing(c *conn, args [][]byte) error {
	switch {
	case len(args) > 2:
		return wrongArguments("ping")
	case !c.resp3 && c.subscriptions() > 0:
		var message []byte
		if len(args) == 2 {
			message = args[1]
		}
		c.reply([]any{"pong", message})
	case len(args) == 2:
		c.bulk(args[1])
	default:
		c.status("PONG")
	}
	return nil
}

func runEcho(c *conn, args [][]byte) error { return c.reply(args[1]) }

func runSelect(c *conn, args [][]byte) error {
	c.ok()
	return checkDatabase(args[1])
}

func runClientID(c *conn, _ [][]byte) error { return c.reply(c.id) }

// maxLabel is the maximum length of a client's name and of the name and the version of its library, in bytes: other
// clients wait while CLIENT LIST shows them.
const maxLabel = 1 << 10

// checkLabel returns an error unless text is short and consists of printable ASCII characters without spaces, so that
// it is a single word in the reply to CLIENT LIST. what begins the text of the error.
func checkLabel(what string, text []byte) error {
	switch {
	case len(text) > maxLabel:
		return &Error{Text: what + " cannot be longer than " + itoa(maxLabel) + " bytes."}
	case slices.ContainsFunc(text, func(b byte) bool { return b < '!' || b > '~' }):
		return &Error{Text: what + " cannot contain spaces, newlines or special characters."}
	}
	return nil
}

func checkClientName(name []byte) error { return checkLabel("Client names", name) }

func (c *conn) setName(name []byte) {
	c.s.mu.Lock()
	c.name = string(name)
	c.s.mu.Unlock()
}

func runClientSetName(c *conn, args [][]byte) error {
	if err := checkClientName(args[2]); err != nil {
		return err
	}
	c.setName(args[2])
	return c.reply(replyOK)
}

func runClientGetName(c *conn, _ [][]byte) error {
	if c.name == "" {
		return c.reply(nil)
	}
	return c.reply(c.name)
}

func runClientSetInfo(c *conn, args [][]byte) error {
	name := lowerWord(args[2])
	i := slices.Index([]string{"lib-name", "lib-ver"}, name)
	if i < 0 {
		return &Error{Text: "Unrecognized option '" + printable(args[2], maxShown) + "'"}
	}
	if err := checkLabel(name, args[3]); err != nil {
		return err
	}
	c.s.mu.Lock()
	c.library[i] = string(args[3])
	c.s.mu.Unlock()
	return c.reply(replyOK)
}

func runClientReply(c *conn, args [][]byte) error {
	switch lowerWord(args[2]) {
	case "on":
		c.replyOff, c.skip = false, 0
		c.unmute()
		c.ok()
	case "off":
		c.replyOff = true
		c.mute()
	case "skip":
		if !c.replyOff {
			c.skip = 2
		}
	default:
		return errSyntax
	}
	return nil
}

// runClientSwitch implements CLIENT NO-EVICT and CLIENT NO-TOUCH.
func runClientSwitch(c *conn, args [][]byte) error {
	on := equalFold(args[2], "on")
	if !on && !equalFold(args[2], "off") {
		return errSyntax
	}
	if equalFold(args[1], "no-evict") {
		c.noEvict.Store(on)
	} else {
		c.noTouch.Store(on)
	}
	return c.reply(replyOK)
}

// runClientUnblock unblocks no client, because no command blocks.
func runClientUnblock(c *conn, args [][]byte) error {
	if len(args) > 4 || len(args) == 4 && !equalFold(args[3], "timeout") && !equalFold(args[3], "error") {
		return &Error{Text: "CLIENT UNBLOCK reason should be TIMEOUT or ERROR"}
	}
	if _, err := integerArg(args[2]); err != nil {
		return err
	}
	return c.reply(0)
}

func runACLWhoAmI(c *conn, _ [][]byte) error { return c.reply(c.userName()) }

// describe returns the line about other in the reply to CLIENT LIST or CLIENT INFO. c is the client
// that sent the command. Server.mu is held.
func (c *conn) describe(other *conn) string {
	flags := ""
	for _, f := range []struct {
		set    bool
		letter string
	}{{other.subscriptions() > 0, "P"}, {other.waiting.Load() >= 0, "x"}, {other.dirty.Load(), "d"}, {other.noEvict.Load(), "e"}, {other.noTouch.Load(), "T"}} {
		if f.set {
			flags += f.letter
		}
	}
	request, all, free := 0, 0, 0
	if c == other { // only a client's own goroutine may use its requestReader
		request, all, free = other.inputSizes()
	}
	resp := 2
	if other.pushes.Load() {
		resp = 3
	}
	command := "NULL"
	if last := other.lastCommand.Load(); last != nil {
		command = last.fullName()
	}
	pending, age := other.out.length(), time.Since(other.since)
	idle := time.Since(other.s.started) - time.Duration(other.active.Load())
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=0 sub=%d psub=%d ssub=%d multi=%d "+
		"qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=0 rbs=%d rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=r cmd=%s user=%s redir=-1 resp=%d lib-name=%s lib-ver=%s",
		other.id, address(other.nc.RemoteAddr()), address(other.nc.LocalAddr()), other.id, other.name, int(age.Seconds()), int(idle.Seconds()), cmp.Or(flags, "N"),
		len(other.subs[ofChannels].M), len(other.subs[ofPatterns].M), len(other.subs[ofShards].M), other.waiting.Load(), all, free, request, smallBuffer, pending, smallBuffer+pending,
		command, other.userName(), resp, other.library[0], other.library[1])
}

// userName returns the name of the logged-in user, or "default" if there is none. Every goroutine but
// c's own must hold Server.mu.
func (c *conn) userName() string { return cmp.Or(c.who.User, defaultUser) }

// address returns an address as CLIENT LIST shows it.
func address(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}

func runClientInfo(c *conn, _ [][]byte) error {
	if err := c.look(10); err != nil { // as for each client in lookAtClients
		return err
	}
	c.s.mu.Lock()
	line := c.describe(c)
	c.s.mu.Unlock()
	c.verbatim(line + "\n")
	return nil
}

// clients returns the connections for which accept returns true, oldest first. Server.mu is held.
func (s *Server) clients(accept func(*conn) bool) []*conn {
	var all []*conn
	for c := range s.conns {
		if accept(c) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return all
}

func anyClient(*conn) bool { return true }

// typeFilter returns a filter that accepts clients of the type named by arg. This server has only
// clients of the types normal and pubsub.
func typeFilter(arg []byte) (func(*conn) bool, error) {
	name := lowerWord(arg)
	if !slices.Contains([]string{"normal", "master", "replica", "slave", "pubsub"}, name) {
		return nil, &Error{Text: "Unknown client type '" + printable(arg, maxShown) + "'"}
	}
	return func(c *conn) bool {
		if c.subscriptions() > 0 {
			return name == "pubsub"
		}
		return name == "normal"
	}, nil
}

func runClientList(c *conn, args [][]byte) error {
	accept := anyClient
	var err error
	switch {
	case len(args) == 2:
	case len(args) == 4 && equalFold(args[2], "type"):
		if accept, err = typeFilter(args[3]); err != nil {
			return err
		}
	case len(args) > 3 && equalFold(args[2], "id"):
		var ids []int64
		for _, a := range args[3:] {
			id, ok := parseInt(a)
			if !ok {
				return &Error{Text: "Invalid client ID"}
			}
			ids = append(ids, id)
		}
		slices.Sort(ids)
		accept = func(of *conn) bool {
			_, found := slices.BinarySearch(ids, of.id)
			return found
		}
	default:
		return errSyntax
	}
	if err := c.lookAtClients(); err != nil {
		return err
	}
	var lines strings.Builder
	mayAll := c.mayAll()
	c.lockForClients()
	for i, of := range c.s.clients(accept) {
		if i%manyClients == manyClients-1 {
			c.s.mu.Unlock() // a change of a key may wait for it with the Local locked
			c.s.mu.Lock()
		}
		if _, open := c.s.conns[of]; open && (mayAll || !c.isForeign(of)) {
			lines.WriteString(c.describe(of) + "\n")
		}
	}
	c.s.mu.Unlock()
	c.verbatim(lines.String())
	return nil
}

// killFilter returns a filter that accepts the clients that one option of CLIENT KILL selects. arg is
// the option's value.
func (c *conn) killFilter(option, arg []byte) (func(*conn) bool, error) {
	switch lowerWord(option) {
	case "id":
		id, ok := parseInt(arg)
		if !ok || id < 1 {
			return nil, &Error{Text: "client-id should be greater than 0"}
		}
		return func(of *conn) bool { return of.id == id }, nil
	case "addr":
		return func(of *conn) bool { return address(of.nc.RemoteAddr()) == string(arg) }, nil
	case "laddr":
		return func(of *conn) bool { return address(of.nc.LocalAddr()) == string(arg) }, nil
	case "user":
		if string(arg) != c.userName() && !c.mayAll() { // even if the user does not exist
			return nil, notPermitted(c.lastCommand.Load())
		}
		return func(of *conn) bool { return of.userName() == string(arg) }, nil
	case "type":
		return typeFilter(arg)
	}
	return nil, errSyntax
}

func runClientKill(c *conn, args [][]byte) error {
	if len(args) == 3 { // the old form: CLIENT KILL ADDRESS
		byAddress, _ := c.killFilter([]byte("addr"), args[2])
		n, err := c.kill(byAddress)
		if err == nil && n == 0 {
			err = &Error{Text: "No such client"}
		}
		c.ok()
		return err
	}
	if len(args)%2 != 0 {
		return errSyntax
	}
	skipMe, user := true, []byte(defaultUser)
	filters := make(map[string]func(*conn) bool) // by option: the last one counts, as in Redis
	for i := 2; i < len(args); i += 2 {
		if equalFold(args[i], "skipme") && (equalFold(args[i+1], "yes") || equalFold(args[i+1], "no")) {
			skipMe = equalFold(args[i+1], "yes")
			continue
		}
		accept, err := c.killFilter(args[i], args[i+1])
		if err != nil {
			return err
		}
		option := lowerWord(args[i])
		if filters[option] = accept; option == "user" {
			user = args[i+1]
		}
	}
	if string(user) != defaultUser {
		c.lockForClients()
		found := len(c.s.clients(filters["user"]))
		c.s.mu.Unlock()
		if found == 0 {
			return &Error{Text: "No such user '" + printable(user, maxShown) + "'"} // or the user has no connections
		}
	}
	n, err := c.kill(func(of *conn) bool {
		if of == c && skipMe {
			return false
		}
		for _, accept := range filters {
			if !accept(of) {
				return false
			}
		}
		return true
	})
	c.integer(int64(n))
	return err
}

// isForeign reports whether another connection belongs to a different user than c. c itself is never
// foreign. If c has not logged in as a user, every other connection is foreign.
func (c *conn) isForeign(of *conn) bool {
	return of != c && (c.who.User == "" || of.who.User != c.who.User)
}

// kill closes the connections for which accept returns true, and returns their number. If c is one of
// them, c is closed after the reply. If c's user may not close one of them, kill closes none and
// returns an error.
func (c *conn) kill(accept func(*conn) bool) (n int, err error) {
	if err := c.lookAtClients(); err != nil {
		return 0, err
	}
	mayAll := c.mayAll()
	c.lockForClients()
	found := c.s.clients(accept)
	if !mayAll && slices.ContainsFunc(found, c.isForeign) {
		err = notPermitted(c.lastCommand.Load())
	}
	c.s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	for _, of := range found {
		if of == c {
			c.last = true
			continue
		}
		c.s.cut(of)
		c.s.mu.Lock()
		c.s.forget(of)
		c.s.mu.Unlock()
	}
	return len(found), nil
}
