package broker

import (
	"maps"
	"slices"
	"time"
)

// Rights are asked when they are used. What outlives a connection or a change of the rights is asked again: the
// subscriptions of a session and its queued messages here, a will in publishWill.

// Reauthorize must be called after the rights of clients have changed. Sessions whose clients are away lose the
// subscriptions and queued messages that Options.Authorize no longer allows, at the latest before they are resumed.
// The caller must disconnect the connected clients. Reauthorize requires the lock.
func (b *Broker) Reauthorize() {
	b.rights++
	if b.opts.Authorize == nil {
		return
	}
	sessions := slices.Collect(maps.Values(b.sessions))
	b.later(func() {
		var locked time.Time
		for _, s := range sessions {
			b.yieldAfter(&locked)
			if s.client == nil && s.rights != b.rights && b.sessions[s.id] == s {
				s.reauthorize(s.who, &locked)
			}
		}
	})
}

// reauthorize removes the subscriptions that a client may not have. Their queued messages remain: mayReceive decides about
// them when they are sent. reauthorize may unlock the broker, see yieldAfter. It returns false if the rights or the session
// have changed meanwhile.
func (s *session) reauthorize(who *Identity, locked *time.Time) bool {
	b := s.b
	if b.opts.Authorize == nil {
		return true
	}
	client, rights := s.client, b.rights
	s.rights = rights
	for _, sub := range slices.Collect(maps.Values(s.subs.M)) {
		b.yieldAfter(locked)
		if s.client != client || b.rights != rights || b.sessions[s.id] != s {
			return false
		}
		if s.subs.M[sub.filter] == sub && !b.may(who, sub.filter, false) {
			b.log.Info("a subscription ended, it is no longer authorized", "client", s.id, "filter", sub.filter)
			b.removeSubscription(sub)
		}
	}
	return true
}

// mayReceive reports whether the session's client may receive a message that was queued before the client connected. If
// not, another member of a shared subscription gets the message.
func (s *session) mayReceive(d *delivery) bool {
	if s.b.may(s.who, d.msg.topic, false) {
		return true
	}
	if d.group != nil {
		s.b.deliverShared(d.group, d.msg, nil)
	}
	return false
}
