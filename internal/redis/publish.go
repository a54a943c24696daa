package redis

import "bytes"

// This file sends messages to subscribers.

// publish sends a message to the subscribers of a channel and of matching patterns, and returns the number
// of messages sent. If the publishing connection, from, is a subscriber too, it gets the message among
// its replies, or is disconnected if these exceed maxPending. In a transaction a message with long parts, which are not copied,
// and those after it come after the replies. If key is not nil, the message is an event of the key, and only clients that may
// read the key get it. s.mu is held.
func (s *Server) publish(from *conn, channel, payload, key []byte) int {
	n := 0
	n += s.publishTo(from, s.rosters[ofChannels].subscribers.M[string(channel)], "message", channel, payload, key)
	cost, most := 0, from.maxMatching()
	for _, p := range s.rosters[ofPatterns].parsed {
		cost += lookCost
		if bytes.HasPrefix(channel, p.Prefix()) {
			cost += p.Cost(len(channel))
		}
		if cost > most {
			s.dropSubscribers(p.text)
			continue
		}
		if p.match(channel) {
			s.message = appendBulk(appendBulk(append(s.message[:0], "*4\r\n"...), "pmessage"), p.text)
			n += s.deliver(from, s.rosters[ofPatterns].subscribers.M[p.text], channel, payload, key)
		}
	}
	return n
}

// publishTo sends a message to the subscribers of one channel, and returns the number of messages sent.
// word is the first element of the message, such as smessage.
func (s *Server) publishTo(from *conn, subs []*conn, word string, channel, payload, key []byte) int {
	if len(subs) == 0 {
		return 0
	}
	s.message = appendBulk(append(s.message[:0], "*3\r\n"...), word)
	return s.deliver(from, subs, channel, payload, key)
}

// lookCost is the number of steps that are counted for every pattern. If the channel begins with the
// pattern's literal prefix, the steps of the match are added.
const lookCost = 64

// dropSubscribers closes the connections of the subscribers of a pattern. s.mu is held.
func (s *Server) dropSubscribers(pattern string) {
	for _, c := range s.rosters[ofPatterns].subscribers.M[pattern] {
		c.out.mu.Lock()
		if !c.out.closed.Load() {
			c.drop("closing a subscriber because all patterns together take too long to match")
		}
		c.out.mu.Unlock()
	}
}

// deliver appends the channel and the payload to s.message, and sends the message to the subscribers. If key
// is not nil, only clients that may read the key get the message. A channel or payload of costlyValue bytes or more must stay
// valid, because deliver does not copy it for many subscribers. deliver returns the number of messages sent. s.mu is held.
func (s *Server) deliver(from *conn, subs []*conn, channel, payload, key []byte) (n int) {
	channel, payload = channel[:min(len(channel), maxPending)], payload[:min(len(payload), maxPending)] // more is too much for every subscriber
	var m []byte
	var rest [][]byte // what follows m
	for _, c := range subs {
		if c.out.closed.Load() || key != nil && !c.mayRead(key) {
			continue
		}
		n++
		switch {
		case m != nil:
		case s.mustShare(subs, max(len(channel), len(payload))):
			m = appendNumber(s.message, '$', int64(len(channel)))
			rest = [][]byte{channel, appendNumber([]byte("\r\n"), '$', int64(len(payload))), payload, []byte("\r\n")}
		default:
			m = appendBulk(appendBulk(s.message, channel), payload)
		}
		m[0] = '*'
		if c.pushes.Load() {
			m[0] = '>'
		}
		if c != from {
			c.send(m, rest)
			continue
		}
		waiting := len(c.w) + len(c.later)
		shared := rest != nil && key == nil // events, whose parts are at most a key, may come before the end of a reply
		if shared || c.holds {
			waiting += c.out.unsent()
		}
		switch {
		case waiting+len(m)+sizeOf(rest) > maxPending:
			c.out.mu.Lock()
			c.drop("closing a subscriber because one of its commands sends it too many messages")
			c.out.mu.Unlock()
		case c.executing && (c.holds || shared):
			c.holds = true
			c.holdMessages()
			c.send(m, rest)
		case shared && c.large == nil && c.sentHead == nil:
			c.commit()
			c.send(m, rest)
		case c.muted || c.large != nil:
			c.later = appendMessage(c.later, m, rest)
		default:
			c.w = appendMessage(c.w, m, rest)
		}
	}
	if m != nil {
		s.message = m
	}
	if from != nil {
		from.sent += n * (sendingSteps(len(m)) + 100*len(rest))
	}
	if cap(s.message) > maxSpare {
		s.message = nil
	}
	return n
}

func appendMessage(to, m []byte, rest [][]byte) []byte {
	to = append(to, m...)
	for _, part := range rest {
		to = append(to, part...)
	}
	return to
}

// mustShare reports whether subscribers share the parts of a message whose longest has n bytes: a copy for each of them, or
// for those of many patterns, would take long. s.mu is held.
func (s *Server) mustShare(subs []*conn, n int) bool {
	const many = 16
	return n >= LargeValue || n >= costlyValue && len(subs)+s.rosters[ofPatterns].listeners > many
}
