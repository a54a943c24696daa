package redis

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// subscribed holds the channels or patterns of one connection, each with the sequence number of its
// subscription.
type subscribed map[string]int64

// A hub holds all subscriptions. Server.mu guards it.
type hub struct {
	channels, patterns roster
	shards             roster // channels of SSUBSCRIBE; without a cluster there are no shards

	watching         map[string]*watchCalls // by key
	sequence         int64                  // sequence number of the latest subscription
	message, channel []byte                 // reused buffers
}

// watchCalls counts the calls of Backend.Watch for one key whose subscriptions have not begun.
type watchCalls struct {
	n    int
	lost bool // [Server.Lost] was called for the key since the first of them
}

func newHub() hub {
	return hub{
		watching: make(map[string]*watchCalls),
		channels: roster{subscribers: make(map[string][]*conn)},
		shards:   roster{subscribers: make(map[string][]*conn)},
		patterns: roster{subscribers: make(map[string][]*conn), ofPatterns: true},
	}
}

// publish sends a message to all subscribers and returns the number of messages sent. The connection
// from gets its messages among its replies. If key is not nil, the message is an event of the key,
// and only clients that may read the key get it. s.mu is held.
func (s *Server) publish(from *conn, channel, payload, key []byte) int {
	n := 0
	n += s.publishTo(from, s.channels.subscribers[string(channel)], "message", channel, payload, key)
	cost := 0
	for _, p := range s.patterns.parsed {
		cost += lookCost
		if bytes.HasPrefix(channel, p.Prefix()) {
			cost += p.Cost(len(channel))
		}
		if cost > maxMatching {
			s.dropSubscribers(p.text)
			continue
		}
		if p.match(channel) {
			s.message = appendBulk(appendBulk(append(s.message[:0], "*4\r\n"...), "pmessage"), p.text)
			n += s.deliver(from, s.patterns.subscribers[p.text], channel, payload, key)
		}
	}
	return n
}

// publishTo sends a message to subscribers of the channel. word is the type of the message in RESP.
func (s *Server) publishTo(from *conn, subs []*conn, word string, channel, payload, key []byte) int {
	if len(subs) == 0 {
		return 0
	}
	s.message = appendBulk(append(s.message[:0], "*3\r\n"...), word)
	return s.deliver(from, subs, channel, payload, key)
}

// maxMatching limits the steps that all patterns together may take to match the channel of one
// message, because other clients wait. A step takes about a nanosecond. The subscribers of the
// remaining patterns may have missed the message, so they are disconnected.
const maxMatching = 4 << 20

// lookCost is the number of steps for a pattern whose prefix does not match.
const lookCost = 64

// dropSubscribers closes the connections of the subscribers of a pattern. s.mu is held.
func (s *Server) dropSubscribers(pattern string) {
	for _, c := range s.patterns.subscribers[pattern] {
		c.out.mu.Lock()
		if !c.out.closed.Load() {
			c.drop("closing a subscriber because all patterns together take too long to match")
		}
		c.out.mu.Unlock()
	}
}

// deliver sends the message in s.message, to which it adds the channel and the payload.
func (s *Server) deliver(from *conn, subs []*conn, channel, payload, key []byte) (n int) {
	m := appendBulk(appendBulk(s.message, channel), payload)
	for _, c := range subs {
		if c.out.closed.Load() || key != nil && !c.mayRead(key) {
			continue
		}
		n++
		m[0] = '*'
		if c.pushes.Load() {
			m[0] = '>'
		}
		switch {
		case c != from:
			c.send(m)
		case c.muted:
			c.unmuted = append(c.unmuted, m...)
		default:
			c.w = append(c.w, m...)
		}
	}
	if s.message = m; cap(m) > maxSpare {
		s.message = nil
	}
	return n
}

// mayRead reports whether the client may read a key. It requires the Local's lock.
func (c *conn) mayRead(key []byte) bool {
	return c.s.local == nil || c.s.local.MayRead(&c.who, key)
}

// subscriptions returns the number of the connection's subscriptions.
func (c *conn) subscriptions() int { return len(c.channels) + len(c.patterns) + len(c.shards) }

// counted returns the number of subscriptions that a confirmation shows.
func (c *conn) counted(r *roster) int {
	if r == &c.s.shards {
		return len(c.shards)
	}
	return len(c.channels) + len(c.patterns)
}

// confirm replies that a subscription has begun or ended, even after CLIENT REPLY OFF. A nil name
// means that there was no subscription to end.
func (c *conn) confirm(word string, name []byte, count int) {
	begin := len(c.w)
	c.aggregate('>', 3)
	c.text(word)
	if name == nil {
		c.null()
	} else {
		c.bulk(name)
	}
	c.integer(int64(count))
	if c.muted {
		c.unmuted = append(c.unmuted, c.w[begin:]...)
		c.w = c.w[:begin]
	}
}

// reportsPatterns reports whether the backend reports the changes of all keys, or of a list of keys
// that it was started with.
func (s *Server) reportsPatterns() bool { return s.local != nil || s.opts.Patterns }

func runSubscribe(c *conn, args [][]byte) error {
	c.startWriter()
	for i, name := range args[1:] {
		if err := c.growNames(i); err != nil {
			return err
		}
		if err := c.watchAndSubscribe(name); err != nil {
			return err
		}
	}
	return nil
}

func runPSubscribe(c *conn, args [][]byte) error {
	if err := patternArgs(args[1:]...); err != nil {
		return err
	}
	if !c.s.reportsPatterns() && slices.ContainsFunc(args[1:], mayNotify) {
		return errExactKey
	}
	c.startWriter()
	for i, pattern := range args[1:] {
		if err := c.growNames(i); err != nil {
			return err
		}
		c.s.subscribe(c, &c.s.patterns, c.patterns, "psubscribe", pattern)
	}
	return nil
}

// subscribe adds a subscription and confirms it, before its first message can arrive.
func (s *Server) subscribe(c *conn, r *roster, own subscribed, word string, name []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := own[string(name)]; !had {
		s.sequence++
		own[string(name)] = s.sequence
		c.nameBytes += r.cost(name)
		r.add(c, string(name))
	}
	c.confirm(word, name, c.counted(r))
	if !c.muted {
		c.commit()
	}
}

func runSSubscribe(c *conn, args [][]byte) error {
	if c.executing {
		return errDenyBlocking
	}
	c.startWriter()
	for i, name := range args[1:] {
		if err := c.growNames(i); err != nil {
			return err
		}
		c.s.subscribe(c, &c.s.shards, c.shards, "ssubscribe", name)
	}
	return nil
}

func runSUnsubscribe(c *conn, args [][]byte) error {
	c.s.unsubscribe(c, &c.s.shards, c.shards, "sunsubscribe", args[1:])
	return nil
}

func runUnsubscribe(c *conn, args [][]byte) error {
	c.s.unsubscribe(c, &c.s.channels, c.channels, "unsubscribe", args[1:])
	return nil
}

func runPUnsubscribe(c *conn, args [][]byte) error {
	c.s.unsubscribe(c, &c.s.patterns, c.patterns, "punsubscribe", args[1:])
	return nil
}

// unsubscribe ends the subscriptions to names, or all subscriptions if there are no names.
func (s *Server) unsubscribe(c *conn, r *roster, own subscribed, word string, names [][]byte) {
	if len(names) == 0 {
		names = own.names()
	}
	if len(names) == 0 {
		c.confirm(word, nil, c.counted(r))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.endSubscription(c, r, own, name)
		c.confirm(word, name, c.counted(r))
	}
	r.prune()
}

// endSubscriptions ends all subscriptions of a connection.
func (s *Server) endSubscriptions(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eachRoster(c, func(r *roster, own subscribed) {
		for name := range own {
			s.endSubscription(c, r, own, []byte(name))
		}
		r.prune()
	})
}

// eachRoster calls f with each roster and the connection's subscriptions in it.
func (s *Server) eachRoster(c *conn, f func(r *roster, own subscribed)) {
	f(&s.channels, c.channels)
	f(&s.patterns, c.patterns)
	f(&s.shards, c.shards)
}

// names returns the names in the order of their subscriptions.
func (own subscribed) names() [][]byte {
	var names [][]byte
	for name := range own {
		names = append(names, []byte(name))
	}
	slices.SortFunc(names, func(a, b []byte) int { return cmp.Compare(own[string(a)], own[string(b)]) })
	return names
}

// endSubscription ends a subscription, if there is one. s.mu is held.
func (s *Server) endSubscription(c *conn, r *roster, own subscribed, name []byte) {
	_, had := own[string(name)]
	delete(own, string(name))
	if had {
		c.nameBytes -= r.cost(name)
		s.unsubscribed(c, r, name)
	}
}

// unsubscribed removes a subscriber. s.mu is held.
func (s *Server) unsubscribed(c *conn, r *roster, name []byte) {
	if r.remove(c, string(name)) && r == &s.channels {
		s.unwatchUnused(name)
	}
}

// forget removes a closed connection and its subscriptions at once, so that other clients no longer see
// them before the connection's own goroutine ends. s.mu is held.
func (s *Server) forget(c *conn) {
	delete(s.conns, c)
	s.eachRoster(c, func(r *roster, own subscribed) {
		for name := range own {
			s.unsubscribed(c, r, []byte(name))
		}
		r.prune()
	})
}

// unwatchUnused ends the watch of a channel's key if no client is subscribed to the channel or is
// subscribing to it. The caller holds s.mu.
func (s *Server) unwatchUnused(channel []byte) {
	key, _, ok := cutChannel(channel)
	if ok && key != nil && s.watching[string(key)] == nil && len(s.channels.subscribers[string(channel)]) == 0 {
		s.opts.Backend.Unwatch(key)
	}
}

// watchAndSubscribe subscribes to a channel. If it is the channel of one key, the backend must
// watch that key first. Until the subscription begins, s.watching keeps the watch when another
// client unsubscribes. If the watch ends before the subscription begins, [Server.Lost] does not
// find the client, so watchAndSubscribe closes its connection.
func (c *conn) watchAndSubscribe(channel []byte) error {
	s := c.s
	key, all, ok := cutChannel(channel)
	if all && !s.reportsPatterns() {
		return errExactKey
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
		c.close()
	}
	return err
}

var errForgedEvent = &Error{Code: "NOPERM", Text: "this user has no permissions to publish events of keys"}

func runPublish(c *conn, args [][]byte) error {
	if _, _, events := cutChannel(args[1]); events && !c.mayAll() {
		return errForgedEvent
	}
	c.s.mu.Lock()
	n := c.s.publish(c, args[1], args[2], nil)
	c.s.mu.Unlock()
	return c.reply(n)
}

func runSPublish(c *conn, args [][]byte) error {
	c.s.mu.Lock()
	n := c.s.publishTo(c, c.s.shards.subscribers[string(args[1])], "smessage", args[1], args[2], nil)
	c.s.mu.Unlock()
	return c.reply(n)
}

// cutChannel returns the key whose events a channel carries. all is set if the channel carries events
// of all keys. ok reports whether it is a channel of keyspace events.
func cutChannel(channel []byte) (key []byte, all, ok bool) {
	if key, ok = bytes.CutPrefix(channel, []byte(keyspacePrefix)); ok {
		return key, false, true
	}
	all = bytes.HasPrefix(channel, []byte(keyeventPrefix))
	return nil, all, all
}

// mayNotify reports whether a pattern may match channels of keyspace events.
func mayNotify(pattern []byte) bool {
	prefix := string(parsePattern(pattern).Prefix())
	for _, p := range []string{keyspacePrefix, keyeventPrefix} {
		if strings.HasPrefix(p, prefix) || strings.HasPrefix(prefix, p) {
			return true
		}
	}
	return false
}

func pubsubCommands() []*command {
	const (
		flags = pubsub | loadingOK | staleOK
		own   = flags | noScript | whileSubscribed
	)
	return []*command{
		{name: "subscribe", arity: -2, flags: own, run: runSubscribe, since: "2.0.0", args: "channel:string...", summary: "Listen for messages published to the given channels"},
		{name: "unsubscribe", arity: -1, flags: own, run: runUnsubscribe, since: "2.0.0", args: "[channel:string...]", summary: "Stop listening for messages posted to the given channels"},
		{name: "psubscribe", arity: -2, flags: own, run: runPSubscribe, since: "2.0.0", args: "pattern:pattern...", summary: "Listen for messages published to channels matching the given patterns"},
		{name: "punsubscribe", arity: -1, flags: own, run: runPUnsubscribe, since: "2.0.0", args: "[pattern:pattern...]", summary: "Stop listening for messages posted to channels matching the given patterns"},
		{name: "ssubscribe", arity: -2, flags: own, run: runSSubscribe, since: "7.0.0", args: "shardchannel:string...", summary: "Listen for messages published to the given shard channels"},
		{name: "sunsubscribe", arity: -1, flags: own, run: runSUnsubscribe, since: "7.0.0", args: "[shardchannel:string...]", summary: "Stop listening for messages posted to the given shard channels"},
		{name: "spublish", arity: 3, flags: flags | fast, run: runSPublish, since: "7.0.0", args: "shardchannel:string message:string", summary: "Post a message to a shard channel"},
		{name: "publish", arity: 3, flags: flags | fast, run: runPublish, since: "2.0.0", args: "channel:string message:string", summary: "Post a message to a channel"},
		{name: "pubsub", arity: -2, since: "2.8.0", summary: "A container for Pub/Sub commands", subs: []*command{
			{name: "channels", arity: -2, flags: flags | usesStore, run: runPubSubChannels, since: "2.8.0", args: "[pattern:pattern]", summary: "List active channels"},
			{name: "numsub", arity: -2, flags: flags, run: runPubSubNumSub, since: "2.8.0", args: "[channel:string...]", summary: "Get the count of subscribers for channels"},
			{name: "numpat", arity: 2, flags: flags, run: runPubSubNumPat, since: "2.8.0", summary: "Get the count of unique patterns pattern subscriptions"},
			{name: "shardchannels", arity: -2, flags: flags | usesStore, run: runPubSubShardChannels, since: "7.0.0", args: "[pattern:pattern]", summary: "List active shard channels"},
			{name: "shardnumsub", arity: -2, flags: flags, run: runPubSubShardNumSub, since: "7.0.0", args: "[shardchannel:string...]", summary: "Get the count of subscribers for shard channels"},
			help("pubsub"),
		}},
	}
}
