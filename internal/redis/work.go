package redis

import "iter"

// This file limits the work of a transaction and of a message, because other clients wait until it ends.

// maxLooked is the maximum number of keys that one transaction may examine with commands such as SCAN, KEYS and
// FLUSHALL, and with those of many keys, because other clients wait until the transaction ends. Other work counts by the
// time that it takes, one key for each 0.5 µs.
const maxLooked = 100_000

var errManyLooked = &Error{Text: "the transaction would be more work than to look at 100000 keys"}

// look counts n more keys that the running transaction is about to examine. It returns an error if the
// total exceeds maxLooked. Outside a transaction, look does nothing.
func (c *conn) look(n int) error {
	if !c.executing || n == 0 {
		return nil
	}
	if c.looked += n; c.looked > maxLooked {
		return errManyLooked
	}
	return nil
}

// lookFor counts a match of a key with a pattern, unless it is quick, see look. A nil pattern matches all keys.
func (c *conn) lookFor(p *pattern, key []byte) error {
	if p == nil {
		return nil
	}
	const steps = 512 // a step takes about a nanosecond
	return c.look(p.Cost(len(key)) / steps)
}

// lookAtClients counts the connections that a command of a transaction is about to look at, see look.
func (c *conn) lookAtClients() error {
	const each = 10 // to describe a client takes some 5 µs
	if !c.executing {
		return nil
	}
	c.s.mu.Lock()
	n := len(c.s.conns)
	c.s.mu.Unlock()
	return c.look(each * (1 + n))
}

// lookAtPatterns counts the work of a command in a transaction that begins or ends subscriptions to patterns, see
// look: the more patterns all clients have, the longer it takes. For other subscriptions it does nothing.
func (c *conn) lookAtPatterns(k kind, names int) error {
	if k != ofPatterns || !c.executing {
		return nil
	}
	c.s.mu.Lock()
	n := len(c.s.rosters[k].parsed)
	c.s.mu.Unlock()
	return c.look(names*(n/1000) + n/20)
}

// maxMatching limits the steps that all patterns together may take to match the channel of one
// message, because other clients wait meanwhile. A step takes about a nanosecond. Beyond this limit, the
// subscribers of the remaining patterns are disconnected, because they may have missed the message.
//
// The messages of one step of many commands or keys, such as a transaction, share maxStepMatching, but each may take
// minMatching, which is enough for a few simple patterns.
const (
	maxMatching     = 4 << 20
	maxStepMatching = 64 << 20
	minMatching     = 512
)

// maxSending limits the steps of sending the messages of one step of many commands or keys. Beyond it, a command that
// would send messages is refused.
const maxSending = 64 << 20

var errManyMessages = &Error{Text: "the messages of one step to all subscribers would be too much work"}

// sendingSteps returns the number of steps of sending a message of the given size to one subscriber.
func sendingSteps(size int) int { return 120 + size/2 }

// maySend returns an error if the running command would send too many messages, with those that its transaction has
// already sent. steps is how many steps these take in addition.
func (c *conn) maySend(steps int) error {
	if c.sent+steps > maxSending {
		return errManyMessages
	}
	return nil
}

// mayAnnounce returns an error if the events of a command in a transaction, or of MSET or MSETNX, would be too many
// messages. The Local is locked.
func (c *conn) mayAnnounce(cmd *command, args [][]byte) error {
	many := cmd.name == "mset" || cmd.name == "msetnx"
	event := "keymiss"
	switch {
	case c.s.local == nil || !c.executing && !many || cmd.flags&usesStore == 0:
		return nil
	case many:
		event = "set"
	case cmd.flags&writes != 0:
		event = "del"
	case class(c.s.flags.Load())&classMiss == 0:
		return nil
	}
	if len(args) <= manyArgs {
		return c.maySend(0)
	}
	return c.maySend(c.s.eventSteps(event, cmd.keysOf(args)))
}

// eventSteps returns at most how many steps it takes to send an event of each key.
func (s *Server) eventSteps(name string, keys iter.Seq[[]byte]) (steps int) {
	flags := class(s.flags.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	channels, patterns := s.rosters[ofChannels].subscribers.M, s.rosters[ofPatterns].listeners
	if flags&(classKeyspace|classKeyevent) == 0 || len(channels) == 0 && patterns == 0 {
		return 0
	}
	for key := range keys {
		n := 0
		if flags&classKeyspace != 0 {
			s.channel = append(append(s.channel[:0], keyspacePrefix...), key...)
			n += patterns + len(channels[string(s.channel)])
		}
		if flags&classKeyevent != 0 {
			n += patterns + len(channels[keyeventPrefix+name])
		}
		if name == "set" && flags&classNew != 0 {
			n *= 2
		}
		steps += n * sendingSteps(len(keyspacePrefix)+len(key)+2*replyCost)
	}
	return steps
}

// maxMatching returns how many steps all patterns together may take to match one message of the running command. The
// connection may be nil.
func (c *conn) maxMatching() int {
	if c == nil || c.messages == 0 {
		return maxMatching
	}
	return min(maxMatching, max(minMatching, maxStepMatching/c.messages))
}
