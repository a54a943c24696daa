package broker

import "time"

// Reset brings the broker back to its state at the start: the clock is the real time plus Options.Skew, and the
// retained messages, the messages that wait to be sent and the sessions whose clients are away are gone, without their
// wills. The connected clients keep their connections, subscriptions and wills, get the rest of what was sent to them, and are
// read again, see [Client.StallReads]. Reset requires the lock.
func (b *Broker) Reset() {
	var topics []string
	b.tree.collect("#", false, func(n *node) {
		if m := n.retained; m != nil && m.sequence >= sysSequences {
			topics = append(topics, m.topic)
		}
	}, func() {})
	for _, topic := range topics {
		b.removeRetained(topic)
	}
	for _, s := range b.sessions {
		s.prune(func(*delivery) bool { return false })
		if s.client != nil {
			continue
		}
		for s.inflight.lo < s.inflight.hi {
			s.finish(s.inflight.lo)
		}
		s.setWill(nil)
		b.removeSession(s)
	}
	for c := range b.clients {
		c.resumeReads()
	}
	b.readTime = time.Time{}
	b.timers.forward, b.timers.armed = b.opts.Skew, time.Time{}
	if b.sysTimer != nil {
		b.Cancel(b.sysTimer)
		b.sysTimer = b.At(b.Now().Add(sysInterval), b.publishSys)
	}
	b.changed = true
}
