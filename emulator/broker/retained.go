package broker

// retain stores a message as the retained one of its topic, or removes that
// [MQTT-3.3.1-5], [MQTT-3.3.1-6]. It returns false if there is no room for it.
func (b *Broker) retain(m *message) bool {
	if len(m.payload) == 0 {
		b.forgetRetained(m.topic)
		return true
	}
	old := 0
	if n := b.tree.find(m.topic, false); n != nil && n.retained != nil {
		old = n.retained.costRetained()
	}
	if !b.retainable(m, old) {
		return false
	}
	n := b.tree.find(m.topic, true)
	b.removeRetained(n)
	b.sequence++
	kept := *m.keep()
	kept.kept, kept.holders, kept.retainedAs = &kept, 0, b.sequence
	n.retained = &kept
	if kept.expires {
		n.expires = b.At(kept.ends(), func() { b.forgetRetained(kept.topic) })
	}
	b.retained += kept.costRetained()
	b.charge(kept.costRetained())
	b.stats.Retained++
	b.changed = true
	return true
}

// costRetained is what a retained message makes the broker keep, in bytes, about.
func (m *message) costRetained() int { return m.cost() + levelOverhead*levels(m.topic) }

// retainable reports whether there is room for m in place of one that costs old.
func (b *Broker) retainable(m *message, old int) bool {
	more := m.costRetained() - old
	return (old > 0 || b.stats.Retained < b.opts.MaxRetained) && b.retained+more <= b.opts.MaxRetainedBytes &&
		b.affords(more) && levels(m.topic) <= maxLevels
}

// forgetRetained removes the retained message of a topic, if there is one.
func (b *Broker) forgetRetained(topic string) {
	if n := b.tree.find(topic, false); n != nil && n.retained != nil {
		b.removeRetained(n)
		n.prune()
	}
}

func (b *Broker) removeRetained(n *node) {
	if n.retained == nil {
		return
	}
	b.Cancel(n.expires)
	b.retained -= n.retained.costRetained()
	b.charge(-n.retained.costRetained())
	b.stats.Retained--
	b.changed = true
	n.retained, n.expires = nil, nil
}
