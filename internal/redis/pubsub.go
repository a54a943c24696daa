package redis

import (
	"bytes"
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/shrinkmap"
)

// subscribed holds the channels or patterns of one connection.
type subscribed struct {
	shrinkmap.Map[string, subscription]
}

// A subscription is one connection's to a channel or a pattern.
type subscription struct {
	sequence int64 // increases from one subscription to the next
	cost     int   // memory charged to the client, in bytes
}

// A kind is a kind of subscription: to channels, patterns or shard channels.
type kind int

const (
	ofChannels kind = iota
	ofPatterns
	ofShards // channels of SSUBSCRIBE; without a cluster there are no shards
	kinds
)

// word returns the first element of a confirmation, such as psubscribe. The argument is subscribe or
// unsubscribe.
func (k kind) word(word string) string { return [kinds]string{"", "p", "s"}[k] + word }

// A hub holds all subscriptions. Server.mu guards it.
type hub struct {
	rosters [kinds]roster

	watching                    map[string]*watchCalls // by key
	sequence                    int64                  // sequence number of the latest subscription
	message, channel, eventName []byte                 // reused buffers
}

// watchCalls counts the running calls to watchAndSubscribe for one key.
type watchCalls struct {
	n    int
	lost bool // [Server.Lost] was called for the key since the first of these calls began
}

func newHub() hub {
	h := hub{watching: make(map[string]*watchCalls)}
	for k := range h.rosters {
		h.rosters[k] = roster{kind: kind(k)}
	}
	return h
}

// mayRead reports whether the client may read a key. The caller has locked the Local, if there is one.
func (c *conn) mayRead(key []byte) bool {
	return c.s.local == nil || c.s.local.MayRead(&c.who, key)
}

func (c *conn) subscriptions() int {
	return len(c.subs[ofChannels].M) + len(c.subs[ofPatterns].M) + len(c.subs[ofShards].M)
}

// confirm replies that a subscription has begun or ended, even after CLIENT REPLY OFF. A nil name means
// that there was no subscription to end. For a shard subscription, the reply's count is the number of
// shard channels; otherwise it is the number of channels and patterns.
func (c *conn) confirm(k kind, word string, name []byte) {
	count := len(c.subs[ofShards].M)
	if k != ofShards {
		count = c.subscriptions() - count
	}
	begin := len(c.w)
	c.aggregate('>', 3)
	c.text(k.word(word))
	if name == nil {
		c.null()
	} else {
		c.bulk(name)
	}
	c.integer(int64(count))
	if c.muted {
		c.later = append(c.later, c.w[begin:]...)
		c.w = c.w[:begin]
	}
}

// reportsPatterns reports whether a client may subscribe to the events of several keys with one
// subscription, for example with PSUBSCRIBE. This requires a Local or Options.Patterns.
func (s *Server) reportsPatterns() bool { return s.local != nil || s.opts.Patterns }

// maxChannel is the maximum length of a channel to which clients subscribe, in bytes, because other clients wait while
// its name is copied. It is more than the length of every channel of events.
const maxChannel = 128 << 10

// checkNames returns an error if one of the channels or patterns is too long.
func (k kind) checkNames(names [][]byte) error {
	if k == ofPatterns {
		return patternArgs(names...)
	}
	if slices.ContainsFunc(names, func(name []byte) bool { return len(name) > maxChannel }) {
		return &Error{Text: "a channel is longer than " + itoa(maxChannel) + " bytes"}
	}
	return nil
}

// subscribeTo returns the handler for SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE, depending on k.
func subscribeTo(k kind) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error {
		names := args[1:]
		if err := c.lookAtPatterns(k, len(names)); err != nil {
			return err
		}
		if err := k.checkNames(names); err != nil {
			return err
		}
		switch k {
		case ofPatterns:
			if !c.s.reportsPatterns() && slices.ContainsFunc(names, mayNotify) {
				return errExactKey
			}
		case ofShards:
			if c.executing {
				return errDenyBlocking
			}
		}
		c.startWriter()
		for i, name := range names {
			err := c.growNames(i)
			if err == nil && k == ofChannels {
				err = c.watchAndSubscribe(name)
			} else if err == nil {
				c.s.subscribe(c, k, name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// subscribe adds a subscription, and confirms it before the first message can arrive.
func (s *Server) subscribe(c *conn, k kind, name []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := c.subs[k].M[string(name)]; !had {
		own := string(name)
		var p *pattern
		if k == ofPatterns {
			p = parsePattern(name)
			p.text = own // one copy in memory
		}
		s.sequence++
		sub := subscription{s.sequence, s.rosters[k].cost(name, p)}
		c.subs[k].Set(own, sub)
		c.nameBytes += sub.cost
		s.rosters[k].add(c, own, p)
	}
	c.confirm(k, "subscribe", name)
	switch {
	case c.executing:
		c.holdMessages()
	case !c.muted:
		c.commit()
	}
}

// unsubscribeFrom returns the handler for UNSUBSCRIBE, PUNSUBSCRIBE or SUNSUBSCRIBE, depending on k.
// Without arguments, the command ends all subscriptions of that kind.
func unsubscribeFrom(k kind) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error {
		names := args[1:]
		if err := k.checkNames(names); err != nil {
			return err
		}
		if len(names) == 0 {
			names = c.subs[k].names()
			if err := c.look(len(names)); err != nil {
				return err
			}
		}
		if err := c.lookAtPatterns(k, len(names)); err != nil {
			return err
		}
		if len(names) == 0 {
			c.confirm(k, "unsubscribe", nil)
		}
		open := true
		for some := range slices.Chunk(names, namesInStep) {
			if open = c.sendConfirmations(); !open {
				break // serve ends the other subscriptions
			}
			c.s.endSome(c, k, some, func(name []byte) { c.confirm(k, "unsubscribe", name) })
		}
		c.s.prune(k)
		if !open {
			return net.ErrClosed
		}
		return nil
	}
}

// namesInStep is the number of subscriptions that begin or end in one step. Between the steps, other clients may use the
// server.
const namesInStep = 64

// endSome ends subscriptions, and calls done after each. The caller must then call prune.
func (s *Server) endSome(c *conn, k kind, names [][]byte, done func(name []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.endSubscription(c, k, name)
		done(name)
	}
}

func (s *Server) prune(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rosters[k].prune()
}

// sendConfirmations lets other clients use the Local. It sends the confirmations of the running command if they have at
// least fullOutput bytes, except in a transaction. It returns false if the connection is closed.
func (c *conn) sendConfirmations() bool {
	c.letOthersIn()
	if c.executing || len(c.w)+len(c.later) < fullOutput {
		return true
	}
	c.unlock()
	return c.flush()
}

func (s *Server) endSubscriptions(c *conn) {
	for k := range kinds {
		var names [][]byte
		for name := range c.subs[k].M {
			names = append(names, []byte(name))
		}
		for some := range slices.Chunk(names, namesInStep) {
			s.endSome(c, k, some, func([]byte) {})
		}
		s.prune(k)
	}
}

// names returns the names in the order in which the client subscribed to them.
func (own *subscribed) names() [][]byte {
	var names [][]byte
	for name := range own.M {
		names = append(names, []byte(name))
	}
	slices.SortFunc(names, func(a, b []byte) int { return cmp.Compare(own.M[string(a)].sequence, own.M[string(b)].sequence) })
	return names
}

// endSubscription ends a subscription, if there is one. The caller must then prune the roster.
// s.mu is held.
func (s *Server) endSubscription(c *conn, k kind, name []byte) {
	sub, had := c.subs[k].M[string(name)]
	c.subs[k].Delete(string(name))
	if had {
		c.nameBytes -= sub.cost
		s.unsubscribed(c, k, name)
	}
}

// unsubscribed removes a connection from the subscribers of a name. The caller must then prune the
// roster. s.mu is held.
func (s *Server) unsubscribed(c *conn, k kind, name []byte) {
	if s.rosters[k].remove(c, string(name)) && k == ofChannels {
		s.unwatchUnused(name)
	}
}

// forget immediately removes a closed connection and its subscriptions, so that other clients no longer
// see them, even though the connection's own goroutine has not ended yet. s.mu is held, except for moments.
func (s *Server) forget(c *conn) {
	delete(s.conns, c)
	for k := range kinds {
		n := 0
		for name := range c.subs[k].M {
			if n++; n%namesInStep == 0 {
				s.mu.Unlock()
				s.mu.Lock()
			}
			s.unsubscribed(c, k, []byte(name))
		}
		s.rosters[k].prune()
	}
}

// unwatchUnused ends the watch of a channel's key if no client has subscribed to the channel or is
// subscribing to it. s.mu is held.
func (s *Server) unwatchUnused(channel []byte) {
	key, _, ok := cutChannel(channel)
	if ok && key != nil && s.watching[string(key)] == nil && len(s.rosters[ofChannels].subscribers.M[string(channel)]) == 0 {
		s.opts.Backend.Unwatch(key)
	}
}

// watchAndSubscribe subscribes to a channel. For the channel of one key, it first makes the backend
// watch the key. Until the subscription begins, an entry in s.watching keeps the watch alive if
// another client unsubscribes. [Server.Lost] closes only connections whose subscription has begun, so
// watchAndSubscribe closes the connection itself if changes were lost before that.
func (c *conn) watchAndSubscribe(channel []byte) error {
	s := c.s
	key, all, ok := cutChannel(channel)
	if all && !s.reportsPatterns() {
		return errExactKey
	}
	if !ok || all {
		s.subscribe(c, ofChannels, channel)
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
		s.subscribe(c, ofChannels, channel)
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

// manyClients is the number of connections at which a command that looks at all of them counts as much work.
const manyClients = 16

// lockInTurn locks Server.mu for a command. If the command is costly, or others have locked Server.mu, it first waits for the
// connection's turn in the line: a change of a key waits for Server.mu with the Local locked, and so would all others
// behind a crowd. costly is called with Server.mu locked.
func (c *conn) lockInTurn(costly func() bool) {
	if c.s.mu.TryLock() {
		if !costly() {
			return
		}
		c.s.mu.Unlock()
	}
	c.standInLine()
	c.s.mu.Lock()
}

func (c *conn) lockForClients() {
	c.lockInTurn(func() bool { return len(c.s.conns) > manyClients })
}

// prepareMessage makes the long arguments of a PUBLISH valid for as long as subscribers have not read them.
func (c *conn) prepareMessage(args [][]byte) error {
	if err := c.maySend(0); err != nil || c.executing { // queued arguments stay valid
		return err
	}
	for i, arg := range args {
		if len(arg) >= costlyValue && len(arg) < LargeValue {
			c.unlock()
			args[i] = bytes.Clone(arg)
		}
	}
	return c.keepValues(args)
}

var errForgedEvent = &Error{Code: "NOPERM", Text: "this user has no permissions to publish events of keys"}

func runPublish(c *conn, args [][]byte) error {
	if _, _, events := cutChannel(args[1]); events && !c.mayAll() {
		return errForgedEvent
	}
	if err := c.prepareMessage(args); err != nil {
		return err
	}
	c.lockInTurn(func() bool { return c.s.isCostly(args[1]) })
	n := c.s.publish(c, args[1], args[2], nil)
	c.s.mu.Unlock()
	return c.reply(n)
}

func runSPublish(c *conn, args [][]byte) error {
	if err := c.prepareMessage(args); err != nil {
		return err
	}
	c.lockInTurn(func() bool { return c.s.isCostly(args[1]) })
	n := c.s.publishTo(c, c.s.rosters[ofShards].subscribers.M[string(args[1])], "smessage", args[1], args[2], nil)
	c.s.mu.Unlock()
	return c.reply(n)
}

// cutChannel returns the key whose events a channel carries. all is true if the channel carries events
// of all keys. ok is false if the channel does not carry events of keys.
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
		{name: "subscribe", arity: -2, flags: own, run: subscribeTo(ofChannels), since: "2.0.0", args: "channel:string...", summary: "Listen for messages published to the given channels"},
		{name: "unsubscribe", arity: -1, flags: own, run: unsubscribeFrom(ofChannels), since: "2.0.0", args: "[channel:string...]", summary: "Stop listening for messages posted to the given channels"},
		{name: "psubscribe", arity: -2, flags: own, run: subscribeTo(ofPatterns), since: "2.0.0", args: "pattern:pattern...", summary: "Listen for messages published to channels matching the given patterns"},
		{name: "punsubscribe", arity: -1, flags: own, run: unsubscribeFrom(ofPatterns), since: "2.0.0", args: "[pattern:pattern...]", summary: "Stop listening for messages posted to channels matching the given patterns"},
		{name: "ssubscribe", arity: -2, flags: own, run: subscribeTo(ofShards), since: "7.0.0", args: "shardchannel:string...", summary: "Listen for messages published to the given shard channels"},
		{name: "sunsubscribe", arity: -1, flags: own, run: unsubscribeFrom(ofShards), since: "7.0.0", args: "[shardchannel:string...]", summary: "Stop listening for messages posted to the given shard channels"},
		{name: "spublish", arity: 3, flags: flags | fast, run: runSPublish, since: "7.0.0", args: "shardchannel:string message:string", summary: "Post a message to a shard channel"},
		{name: "publish", arity: 3, flags: flags | fast, run: runPublish, since: "2.0.0", args: "channel:string message:string", summary: "Post a message to a channel"},
		{name: "pubsub", arity: -2, since: "2.8.0", summary: "A container for Pub/Sub commands", subs: []*command{
			{name: "channels", arity: -2, flags: flags | usesStore, run: listChannels(ofChannels), since: "2.8.0", args: "[pattern:pattern]", summary: "List active channels"},
			{name: "numsub", arity: -2, flags: flags | usesStore, run: countSubscribers(ofChannels), since: "2.8.0", args: "[channel:string...]", summary: "Get the count of subscribers for channels"},
			{name: "numpat", arity: 2, flags: flags, run: runPubSubNumPat, since: "2.8.0", summary: "Get the count of unique patterns pattern subscriptions"},
			{name: "shardchannels", arity: -2, flags: flags | usesStore, run: listChannels(ofShards), since: "7.0.0", args: "[pattern:pattern]", summary: "List active shard channels"},
			{name: "shardnumsub", arity: -2, flags: flags | usesStore, run: countSubscribers(ofShards), since: "7.0.0", args: "[shardchannel:string...]", summary: "Get the count of subscribers for shard channels"},
			help("pubsub"),
		}},
	}
}
