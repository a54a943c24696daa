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
		old = n.retained.cost()
	}
	if !b.retainable(m, old) {
		b.expireRetained()
		if !b.retainable(m, old) {
			return false
		}
	}
	n := b.tree.find(m.topic, true)
	if n.retained != nil {
		b.retained -= n.retained.cost()
		b.stats.Retained--
	}
	b.sequence++
	kept := *m.keep()
	kept.kept, kept.retainedAs = &kept, b.sequence
	n.retained = &kept
	b.retained += kept.cost()
	b.stats.Retained++
	b.changed = true
	return true
}

// retainable reports whether there is room for m in place of one that costs old.
func (b *Broker) retainable(m *message, old int) bool {
	return (old > 0 || b.stats.Retained < b.opts.MaxRetained) && b.retained-old+m.cost() <= b.opts.MaxRetainedBytes &&
		levels(m.topic) <= maxLevels
}

func (b *Broker) forgetRetained(topic string) {
	if n := b.tree.find(topic, false); n != nil && n.retained != nil {
		b.retained -= n.retained.cost()
		b.stats.Retained--
		b.changed = true
		n.retained = nil
		n.prune()
	}
}

// expireRetained removes the retained messages whose Message Expiry Interval has passed.
func (b *Broker) expireRetained() {
	now := b.now()
	var all []*message
	b.tree.collectAll(false, &all)
	for _, m := range all {
		if m.over(now) {
			b.forgetRetained(m.topic)
		}
	}
}
