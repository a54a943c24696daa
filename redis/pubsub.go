package redis

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// roster is who has subscribed to what, by name.
type roster struct {
	subscribers map[string][]*conn // in the order in which they subscribed
	names       []string           // in the order in which they came; only of patterns
	keepsNames  bool
}

// subscribed is what a connection has subscribed to, and as which of its subscriptions.
type subscribed map[string]int64

// hub is all that is subscribed to. Server.mu guards it.
type hub struct {
	channels, patterns roster

	watching         map[string]*watchCalls // by key
	sequence         int64                  // of subscriptions
	message, channel []byte                 // memory that is used again
}

// watchCalls are the calls of Backend.Watch for one key whose subscriptions are to come.
type watchCalls struct {
	n    int
	lost bool // [Server.Lost] was called meanwhile
}

func newHub() hub {
	return hub{
		watching: make(map[string]*watchCalls),
		channels: roster{subscribers: make(map[string][]*conn)},
		patterns: roster{subscribers: make(map[string][]*conn), keepsNames: true},
	}
}

func (r *roster) add(c *conn, name string) {
	if r.keepsNames && len(r.subscribers[name]) == 0 {
		r.names = append(r.names, name)
	}
	r.subscribers[name] = append(r.subscribers[name], c)
}

// remove tells whether the connection was the last one.
func (r *roster) remove(c *conn, name string) (last bool) {
	rest := slices.DeleteFunc(r.subscribers[name], func(other *conn) bool { return other == c })
	if len(rest) > 0 {
		r.subscribers[name] = rest
		return false
	}
	delete(r.subscribers, name)
	if r.keepsNames {
		r.names = slices.DeleteFunc(r.names, func(p string) bool { return p == name })
	}
	return true
}

// publish sends a message to all who have subscribed, and returns how many that are. s.mu
// is held. The connection from gets it among its replies.
func (s *Server) publish(from *conn, channel, payload []byte) int {
	n := 0
	if subs := s.channels.subscribers[string(channel)]; len(subs) > 0 {
		n += s.distribute(from, subs, "message", nil, channel, payload)
	}
	for _, p := range s.patterns.names {
		if match([]byte(p), channel) {
			n += s.distribute(from, s.patterns.subscribers[p], "pmessage", []byte(p), channel, payload)
		}
	}
	return n
}

func (s *Server) distribute(from *conn, subs []*conn, word string, pattern, channel, payload []byte) int {
	m := append(s.message[:0], '*')
	parts := byte('3')
	if pattern != nil {
		parts = '4'
	}
	m = append(append(m, parts), "\r\n"...)
	m = appendBulk(m, word)
	if pattern != nil {
		m = appendBulk(m, pattern)
	}
	m = appendBulk(appendBulk(m, channel), payload)
	for _, c := range subs {
		m[0] = '*'
		if c.pushes.Load() {
			m[0] = '>'
		}
		switch {
		case c != from:
			c.send(m)
		case c.muted:
			c.kept = append(c.kept, m...)
		default:
			c.w = append(c.w, m...)
		}
	}
	s.message = m
	if cap(m) > keptOutput {
		s.message = nil
	}
	return len(subs)
}

// subscriptions is how many the connection has.
func (c *conn) subscriptions() int { return len(c.channels) + len(c.patterns) }

// push begins a message of n parts for the connection itself, which comes even if replies
// are off.
func (c *conn) push(n int) {
	if c.resp3 {
		c.w = appendNumber(c.w, '>', int64(n))
		return
	}
	c.array(n)
}

// confirm reports a subscription, or its end, whatever CLIENT REPLY says.
func (c *conn) confirm(word string, name []byte, none bool, count int) {
	begin := len(c.w)
	c.push(3)
	c.text(word)
	if none {
		c.null()
	} else {
		c.bulk(name)
	}
	c.integer(int64(count))
	if c.muted {
		c.kept = append(c.kept, c.w[begin:]...)
		c.w = c.w[:begin]
	}
}

func runSubscribe(c *conn, args [][]byte) {
	c.startWriter()
	for _, name := range args[1:] {
		if c.s.engine != nil {
			c.s.subscribe(c, &c.s.channels, c.channels, "subscribe", name)
			continue
		}
		if err := c.watchAndSubscribe(name); err != nil {
			c.fail(replyText(err))
			return
		}
	}
}

func runPSubscribe(c *conn, args [][]byte) {
	if c.s.engine == nil && !c.s.opts.Patterns {
		for _, pattern := range args[1:] {
			if mayNotify(pattern) {
				c.error(textExactKey)
				return
			}
		}
	}
	c.startWriter()
	for _, pattern := range args[1:] {
		c.s.subscribe(c, &c.s.patterns, c.patterns, "psubscribe", pattern)
	}
}

// subscribe confirms before any message can come.
func (s *Server) subscribe(c *conn, r *roster, own subscribed, word string, name []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := own[string(name)]; !had {
		s.sequence++
		own[string(name)] = s.sequence
		r.add(c, string(name))
	}
	c.confirm(word, name, false, c.subscriptions())
	if !c.muted {
		c.commit()
	}
}

func runUnsubscribe(c *conn, args [][]byte) {
	c.s.unsubscribe(c, &c.s.channels, c.channels, "unsubscribe", args[1:])
}

func runPUnsubscribe(c *conn, args [][]byte) {
	c.s.unsubscribe(c, &c.s.patterns, c.patterns, "punsubscribe", args[1:])
}

// unsubscribe ends subscriptions: without names all there are.
func (s *Server) unsubscribe(c *conn, r *roster, own subscribed, word string, names [][]byte) {
	if len(names) == 0 {
		names = own.names()
		if len(names) == 0 {
			c.confirm(word, nil, true, c.subscriptions())
			return
		}
	}
	for _, name := range names {
		s.end(c, r, own, name)
		c.confirm(word, name, false, c.subscriptions())
	}
}

// names are the names of the subscriptions, in their order.
func (own subscribed) names() [][]byte {
	var names [][]byte
	for name := range own {
		names = append(names, []byte(name))
	}
	slices.SortFunc(names, func(a, b []byte) int { return cmp.Compare(own[string(a)], own[string(b)]) })
	return names
}

// end ends one subscription.
func (s *Server) end(c *conn, r *roster, own subscribed, name []byte) {
	s.mu.Lock()
	_, had := own[string(name)]
	delete(own, string(name))
	if had && r.remove(c, string(name)) && r == &s.channels {
		s.unwatchUnused(name)
	}
	s.mu.Unlock()
}

// unwatchUnused ends the watching of the key of a channel, if nobody needs it. s.mu is held.
func (s *Server) unwatchUnused(channel []byte) {
	key, _, ok := cutChannel(channel)
	if ok && key != nil && s.engine == nil && s.watching[string(key)] == nil && len(s.channels.subscribers[string(channel)]) == 0 {
		s.opts.Backend.Unwatch(key)
	}
}

// watchAndSubscribe asks a remote backend for what a channel wants, if it is one of
// notifications. s.watching keeps the end of another subscription from ending the watch
// meanwhile. If the watch ends by itself, the client is too late to be told of that by
// [Server.Lost], and is disconnected here.
func (c *conn) watchAndSubscribe(channel []byte) error {
	s := c.s
	key, all, ok := cutChannel(channel)
	if all && !s.opts.Patterns {
		return &Error{Text: textExactKey}
	}
	if !ok || all {
		s.subscribe(c, &s.channels, c.channels, "subscribe", channel)
		return nil
	}
	s.mu.Lock()
	calls := s.watching[string(key)]
	if calls == nil {
		calls = new(watchCalls)
		s.watching[string(key)] = calls
	}
	calls.n++
	s.mu.Unlock()
	err := s.opts.Backend.Watch(s.ctx, key)
	if err == nil {
		s.subscribe(c, &s.channels, c.channels, "subscribe", channel)
	}
	s.mu.Lock()
	if calls.n--; calls.n == 0 {
		delete(s.watching, string(key))
	}
	s.unwatchUnused(channel)
	lost := calls.lost
	s.mu.Unlock()
	if lost && err == nil {
		s.log.Warn("closing a subscriber that may have missed changes", "client", c.who.ID, "key", string(key))
		c.cut()
	}
	return err
}

func runPublish(c *conn, args [][]byte) {
	c.s.mu.Lock()
	n := c.s.publish(c, args[1], args[2])
	c.s.mu.Unlock()
	c.integer(int64(n))
}

func runPubSubChannels(c *conn, args [][]byte) {
	if len(args) > 3 {
		c.error(wrongSubcommand("pubsub", args[1]))
		return
	}
	var names []string
	c.s.mu.Lock()
	for name := range c.s.channels.subscribers {
		if len(args) == 2 || match(args[2], []byte(name)) {
			names = append(names, name)
		}
	}
	c.s.mu.Unlock()
	slices.Sort(names)
	c.array(len(names))
	for _, name := range names {
		c.text(name)
	}
}

func runPubSubNumSub(c *conn, args [][]byte) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.array(2 * len(args[2:]))
	for _, name := range args[2:] {
		c.bulk(name)
		c.integer(int64(len(c.s.channels.subscribers[string(name)])))
	}
}

func runPubSubNumPat(c *conn, _ [][]byte) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.integer(int64(len(c.s.patterns.subscribers)))
}

// cutChannel returns the key of a channel of notifications of one key; all says that it is
// one of the channels of all keys.
func cutChannel(channel []byte) (key []byte, all, ok bool) {
	if key, ok = bytes.CutPrefix(channel, []byte(keyspacePrefix)); ok {
		return key, false, true
	}
	all = bytes.HasPrefix(channel, []byte(keyeventPrefix))
	return nil, all, all
}

// mayNotify tells whether a pattern may match channels of notifications.
func mayNotify(pattern []byte) bool {
	prefix := string(literalPrefix(pattern))
	for _, p := range []string{keyspacePrefix, keyeventPrefix} {
		if strings.HasPrefix(p, prefix) || strings.HasPrefix(prefix, p) {
			return true
		}
	}
	return false
}

func pubsubCommands() []*command {
	const flags = pubsub | noScript | loadingOK | staleOK
	rows := []*command{
		{name: "subscribe", arity: -2, flags: flags | whileSubscribed, run: runSubscribe, since: "2.0.0", args: "channel:string...", summary: "Listen for messages published to the given channels"},
		{name: "unsubscribe", arity: -1, flags: flags | whileSubscribed, run: runUnsubscribe, since: "2.0.0", args: "[channel:string...]", summary: "Stop listening for messages posted to the given channels"},
		{name: "psubscribe", arity: -2, flags: flags | whileSubscribed, run: runPSubscribe, since: "2.0.0", args: "pattern:pattern...", summary: "Listen for messages published to channels matching the given patterns"},
		{name: "punsubscribe", arity: -1, flags: flags | whileSubscribed, run: runPUnsubscribe, since: "2.0.0", args: "[pattern:pattern...]", summary: "Stop listening for messages posted to channels matching the given patterns"},
		{name: "publish", arity: 3, flags: pubsub | loadingOK | staleOK | fast, run: runPublish, since: "2.0.0", args: "channel:string message:string", summary: "Post a message to a channel"},
		{name: "pubsub", arity: -2, since: "2.8.0", summary: "A container for Pub/Sub commands", subs: []*command{
			{name: "channels", arity: -2, flags: pubsub | loadingOK | staleOK, run: runPubSubChannels, since: "2.8.0", args: "[pattern:pattern]", summary: "List active channels"},
			{name: "numsub", arity: -2, flags: pubsub | loadingOK | staleOK, run: runPubSubNumSub, since: "2.8.0", args: "[channel:string...]", summary: "Get the count of subscribers for channels"},
			{name: "numpat", arity: 2, flags: pubsub | loadingOK | staleOK, run: runPubSubNumPat, since: "2.8.0", summary: "Get the count of unique patterns pattern subscriptions"},
			pubsubHelp(),
		}},
	}
	for _, cmd := range rows {
		cmd.group = "pubsub"
	}
	return rows
}
