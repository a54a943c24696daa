package broker

import (
	"cmp"
	"slices"
)

// A retainedMatch is a retained message that a filter matches.
type retainedMatch struct {
	*node
	sequence uint64 // identifies the message that was found; node may hold a newer one by now
}

// retainedFor returns the retained messages that a filter matches and whose sequence number is at
// most last, in the order in which they were published. It calls step, which may unlock the broker,
// between topics. It also unlocks the broker while it sorts many messages.
func (b *Broker) retainedFor(filter string, last uint64, step func()) []retainedMatch {
	var found []retainedMatch
	b.tree.collect(filter, true, func(n *node) {
		if m := n.retained; m != nil && m.sequence <= last {
			found = append(found, retainedMatch{n, m.sequence})
		}
	}, step)
	if len(found) > longRetained {
		b.Unlock()
		defer b.Lock()
	}
	slices.SortFunc(found, func(a, b retainedMatch) int { return cmp.Compare(a.sequence, b.sequence) })
	return found
}

// retain stores a message as the retained message of its topic, or removes the retained message if
// the payload is empty [MQTT-3.3.1-5], [MQTT-3.3.1-6]. It returns false if there is no room or the
// topic has too many levels.
func (b *Broker) retain(m *message) bool {
	if m.size() == 0 {
		b.removeRetained(m.topic)
		return true
	}
	old := 0
	if n := b.tree.find(m.topic, false); n != nil && n.retained != nil {
		old = n.retained.costRetained()
	}
	more := m.costRetained() - old
	if old == 0 && b.stats.Retained >= b.opts.MaxRetained || b.retained+more > b.opts.MaxRetainedBytes ||
		!b.affords(more) || levels(m.topic) > maxLevels {
		return false
	}
	n := b.tree.find(m.topic, true)
	b.clearRetained(n)
	b.sequence++
	kept := *m.keep()
	kept.kept, kept.slot, kept.sequence = &kept, none, b.sequence
	n.retained = &kept
	if !kept.expires.IsZero() {
		n.expires = b.At(kept.expires, func() { b.removeRetained(kept.topic) })
	}
	b.countRetained(&kept, 1)
	return true
}

// countRetained counts a retained message that was added (1) or removed (-1).
func (b *Broker) countRetained(m *message, sign int) {
	b.retained += sign * m.costRetained()
	b.charge(sign * m.costRetained())
	b.stats.Retained += sign
	b.changed = true
}

// costRetained returns the estimated memory of a retained message, in bytes.
func (m *message) costRetained() int {
	n := m.cost() + levelCost(m.topic)
	if !m.expires.IsZero() {
		n += timerOverhead
	}
	return n
}

func (b *Broker) removeRetained(topic string) {
	if n := b.tree.find(topic, false); n != nil {
		b.clearRetained(n)
		n.prune()
	}
}

func (b *Broker) clearRetained(n *node) {
	if n.retained == nil {
		return
	}
	b.Cancel(n.expires)
	b.countRetained(n.retained, -1)
	n.retained, n.expires = nil, nil
}
