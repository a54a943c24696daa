package redis

import (
	"net"
	"slices"
)

// This file holds the handlers for the subcommands of PUBSUB.

// listChannels returns the handler for PUBSUB CHANNELS or, if k is ofShards, PUBSUB SHARDCHANNELS.
func listChannels(k kind) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error { return c.listChannels(&c.s.rosters[k], args) }
}

func (c *conn) listChannels(r *roster, args [][]byte) error {
	if len(args) > 3 {
		return wrongSubcommand(args)
	}
	if err := patternArgs(args[2:]...); err != nil {
		return err
	}
	var p *pattern // nil = all channels
	if len(args) == 3 {
		p = parsePattern(args[2])
	}
	var names []string
	c.s.mu.Lock()
	n := len(r.subscribers.M)
	c.s.mu.Unlock()
	if err := c.look(n); err != nil {
		return err
	}
	n = 0
	c.s.mu.Lock()
	for name := range r.subscribers.M {
		if n++; n%64 == 0 {
			c.s.mu.Unlock()
			c.letOthersIn()
			c.s.mu.Lock()
		}
		key, _, _ := cutChannel([]byte(name))
		if (p == nil || p.match([]byte(name))) && (key == nil || c.mayRead(key)) {
			names = append(names, name)
		}
	}
	c.s.mu.Unlock()
	if !c.executing {
		c.unlock() // sorting may take long
	}
	slices.Sort(names)
	c.array(len(names))
	for _, name := range names {
		if c.text(name); !c.sendPart() {
			return net.ErrClosed
		}
	}
	return nil
}

// countSubscribers returns the handler for PUBSUB NUMSUB or, if k is ofShards, PUBSUB SHARDNUMSUB.
func countSubscribers(k kind) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error { return c.countSubscribers(&c.s.rosters[k], args) }
}

func (c *conn) countSubscribers(r *roster, args [][]byte) error {
	if err := r.kind.checkNames(args[2:]); err != nil {
		return err
	}
	c.array(2 * len(args[2:]))
	for i, name := range args[2:] {
		if i%64 == 63 {
			c.letOthersIn() // a channel may have many subscribers
		}
		c.bulk(name)
		n := int64(0)
		if key, _, _ := cutChannel(name); key == nil || c.mayRead(key) {
			c.s.mu.Lock()
			for _, sub := range r.subscribers.M[string(name)] {
				if !sub.out.closed.Load() {
					n++
				}
			}
			c.s.mu.Unlock()
		}
		c.integer(n)
		if !c.sendPart() {
			return net.ErrClosed
		}
	}
	return nil
}

func runPubSubNumPat(c *conn, _ [][]byte) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.reply(len(c.s.rosters[ofPatterns].subscribers.M))
}
